// oriel-run: trains and evaluates a compiled plan.
#include "runtime/launch/run_main.h"

int main(int argc, char** argv) { return oriel::runtime::RunMain(argc, argv); }
