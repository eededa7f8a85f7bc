// What main() does about stdin, stdout and stderr.
#ifndef ORIEL_RUNTIME_BASE_STANDARD_STREAMS_H_
#define ORIEL_RUNTIME_BASE_STANDARD_STREAMS_H_

#include <functional>

namespace oriel::runtime {

// Returns what `run`, a program's main function, returns. Where one of the three is closed it is
// /dev/null meanwhile, so that no file or socket gets its number, and what is printed with it.
// Where not all of stdout could be written (a full disk), an exit status of 0 becomes 1, with
// an error that begins with `prefix`; a reader that has gone (`| head`) is no error.
int WithStandardStreams(const char* prefix, const std::function<int()>& run);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_STANDARD_STREAMS_H_
