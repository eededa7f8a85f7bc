// The compiler's command line; see docs/cli.md.
#include "driver/cli.h"

int main(int argc, char** argv) { return oriel::driver::runOriel(argc, argv); }
