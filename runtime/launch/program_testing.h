// Runs programs for tests.
#ifndef ORIEL_RUNTIME_LAUNCH_PROGRAM_TESTING_H_
#define ORIEL_RUNTIME_LAUNCH_PROGRAM_TESTING_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace oriel::runtime {

// A started program, whose output is kept in files of its own. Killed with the object.
class TestProgram {
 public:
  // The first word is looked up in PATH.
  explicit TestProgram(const std::vector<std::string>& command);
  ~TestProgram();
  TestProgram(const TestProgram&) = delete;
  TestProgram& operator=(const TestProgram&) = delete;

  pid_t pid() const { return pid_; }
  // Its exit status, 128 + signal, or -1 if it is not over in time.
  int Wait(double seconds = 50);
  std::string output() const;
  std::string errors() const;

 private:
  std::string folder_;
  pid_t pid_ = -1;
  int status_ = -1;
};

// Waits until a file is there; false if that takes too long.
bool WaitForFile(const std::string& path, double seconds = 30);

// Processes started by `ancestor`, directly or not, whose command line begins with `program`.
std::vector<pid_t> Descendants(pid_t ancestor, const std::string& program);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_PROGRAM_TESTING_H_
