// oriel-run: trains and evaluates a compiled plan.
#include "runtime/base/standard_streams.h"
#include "runtime/launch/run_main.h"

int main(int argc, char** argv) {
  return oriel::runtime::WithStandardStreams("oriel-run: error: ",
                                             [&] { return oriel::runtime::RunMain(argc, argv); });
}
