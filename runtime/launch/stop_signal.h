// Ctrl-C and its kin.
#ifndef ORIEL_RUNTIME_LAUNCH_STOP_SIGNAL_H_
#define ORIEL_RUNTIME_LAUNCH_STOP_SIGNAL_H_

namespace oriel::runtime {

enum class StopHandling {
  kInteractive,  // says what happens on stderr; the second signal ends the process at once
  kRank,         // silent; SIGUSR1 too, which mpirun passes on
  kLauncher,     // as kInteractive, but the second signal is left to the caller
};

// From now on SIGINT, SIGTERM and SIGHUP (its terminal is gone) only count. A SIGHUP that is
// ignored (nohup) stays so. SIGXFSZ and SIGPIPE are ignored: the write fails. Called before threads
// that compute are started: but in a launcher, no signal interrupts them, or this one, any more.
void InstallStopHandlers(StopHandling handling);
// How many have arrived. One that follows another within 0.3 s is the same request: a process
// group's signal and one to the process come together (timeout(1) sends both).
int StopRequests();

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_STOP_SIGNAL_H_
