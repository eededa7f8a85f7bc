#include "runtime/launch/program_testing.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "gtest/gtest.h"

namespace oriel::runtime {
namespace {

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename Done>
bool WaitUntil(double seconds, const Done& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    usleep(10'000);
  }
  return true;
}

// The parent of a process, from /proc/PID/stat, whose second field may hold anything in ().
pid_t ParentOf(pid_t pid) {
  const std::string stat = Slurp("/proc/" + std::to_string(pid) + "/stat");
  const size_t end = stat.rfind(')');
  if (end == std::string::npos) return -1;
  std::istringstream rest(stat.substr(end + 1));
  char state = 0;
  pid_t parent = -1;
  rest >> state >> parent;
  return parent;
}

}  // namespace

TestProgram::TestProgram(const std::vector<std::string>& command) {
  std::string pattern = ::testing::TempDir() + "/oriel-program-XXXXXX";
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
  const std::string out = folder_ + "/out", err = folder_ + "/err";
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
  execvp(argv[0], argv.data());
  _exit(127);
}

TestProgram::~TestProgram() {
  if (status_ < 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

int TestProgram::Wait(double seconds) {
  if (status_ >= 0) return status_;
  WaitUntil(seconds, [&] {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
  });
  return status_;
}

std::string TestProgram::output() const { return Slurp(folder_ + "/out"); }
std::string TestProgram::errors() const { return Slurp(folder_ + "/err"); }

bool WaitForFile(const std::string& path, double seconds) {
  return WaitUntil(seconds, [&] { return access(path.c_str(), F_OK) == 0; });
}

std::vector<pid_t> Descendants(pid_t ancestor, const std::string& program) {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    const pid_t pid = std::atoi(it->path().filename().c_str());
    if (pid <= 0 || pid == ancestor) continue;
    pid_t parent = ParentOf(pid);
    while (parent > 1 && parent != ancestor) parent = ParentOf(parent);
    if (parent != ancestor) continue;
    // Arguments end with a zero byte; c_str() stops at the first.
    if (Slurp(it->path().string() + "/cmdline").c_str() == program) found.push_back(pid);
  }
  return found;
}

}  // namespace oriel::runtime
