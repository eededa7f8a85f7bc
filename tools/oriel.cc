// The compiler's command line; see docs/cli.md.
#include "driver/cli.h"
#include "runtime/base/standard_streams.h"

int main(int argc, char** argv) {
  return oriel::runtime::WithStandardStreams("error: ",
                                             [&] { return oriel::driver::runOriel(argc, argv); });
}
