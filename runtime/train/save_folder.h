// The folder that a run saves checkpoints into, which is the run's alone as long as it lasts.
//
// Two runs that save into one folder would write over each other's checkpoints, and mix their
// files. So a run holds a lock on SAVE_DIR/.lock, which the system gives back when its process
// ends, however that is. Where the file system has no locks (some network ones), nothing is held,
// and `say` is told.
#ifndef ORIEL_RUNTIME_TRAIN_SAVE_FOLDER_H_
#define ORIEL_RUNTIME_TRAIN_SAVE_FOLDER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace oriel::runtime {

class SaveFolder {
 public:
  // Of rank 0. Makes the folder, and waits as long as `patience` for a run that has it: one whose
  // launcher was killed may still be finishing its last checkpoint. `say` is told that it waits;
  // `stop` is asked whether to give up (Cancelled). FailedPrecondition, naming the other run, if
  // that goes on. Then removes what killed runs have left of checkpoints that they had not
  // finished.
  static absl::StatusOr<std::unique_ptr<SaveFolder>> Take(
      const std::string& path, std::chrono::milliseconds patience,
      const std::function<void(const std::string&)>& say, const std::function<bool()>& stop);
  // Of every rank, before it looks for the latest checkpoint there and before rank 0 takes the
  // folder: waits as Take does for a run that has it, with the same errors. Makes and holds
  // nothing.
  static absl::Status AwaitOthers(const std::string& path, std::chrono::milliseconds patience,
                                  const std::function<void(const std::string&)>& say,
                                  const std::function<bool()>& stop);
  ~SaveFolder();
  SaveFolder(const SaveFolder&) = delete;
  SaveFolder& operator=(const SaveFolder&) = delete;

 private:
  SaveFolder(std::string path, bool made, int fd) : path_(std::move(path)), made_(made), fd_(fd) {}

  const std::string path_;
  const bool made_;  // by Take; it goes again if nothing has come into it
  const int fd_;     // -1: no lock is held
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_SAVE_FOLDER_H_
