#include "tests/tools/command.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "tools/io/safetensors.hpp"

namespace tessera::testing {
namespace {

constexpr std::chrono::seconds kLimit{100};

struct Pipe {
  int read = -1;
  int write = -1;

  explicit Pipe(Terminal terminal) {
    if (terminal == Terminal::Yes) {
      if (::openpty(&read, &write, nullptr, nullptr, nullptr) != 0)
        throw std::runtime_error("no terminal to be had");
      ::fcntl(read, F_SETFD, FD_CLOEXEC);
      ::fcntl(write, F_SETFD, FD_CLOEXEC);
      return;
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe to be had");
    read = ends[0];
    write = ends[1];
  }
};

/// A descriptor of the file, or the other one if there is none.
int file_or(const std::string& file, int other) {
  return file.empty() ? other : ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
}

[[noreturn]] void become(const std::vector<std::string>& arguments,
                         const Surroundings& surroundings, int out, int error) {
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(file_or(surroundings.standard_output, out), STDOUT_FILENO);
  ::dup2(file_or(surroundings.standard_error, error), STDERR_FILENO);
  if (surroundings.longest_file) {
    const rlimit limit{*surroundings.longest_file, *surroundings.longest_file};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  for (const auto& [name, value] : surroundings.variables) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv{const_cast<char*>(TESSERA_COMMAND)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(TESSERA_COMMAND, argv.data());
  ::_exit(127);
}

}  // namespace

nlohmann::json Outcome::json() const {
  EXPECT_TRUE(nlohmann::json::accept(out)) << "not one JSON document: " << out;
  return nlohmann::json::parse(out, nullptr, false);
}

Outcome run_tessera(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& variables, Terminal terminal) {
  return run_tessera_in({.variables = variables, .terminal = terminal}, arguments);
}

Outcome run_tessera_in(const Surroundings& surroundings,
                       const std::vector<std::string>& arguments) {
  const Pipe out(Terminal::No);
  const Pipe error(surroundings.terminal);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) become(arguments, surroundings, out.write, error.write);
  ::close(out.write);
  ::close(error.write);

  Outcome outcome;
  const auto end = std::chrono::steady_clock::now() + kLimit;
  std::array<pollfd, 2> files{pollfd{out.read, POLLIN, 0}, pollfd{error.read, POLLIN, 0}};
  while (files[0].fd >= 0 || files[1].fd >= 0) {
    if (std::chrono::steady_clock::now() > end) {
      outcome.timed_out = true;
      ::kill(child, SIGKILL);
      break;
    }
    if (const auto signal = surroundings.interrupt ? surroundings.interrupt() : std::nullopt)
      ::kill(child, *signal);
    ::poll(files.data(), files.size(), surroundings.interrupt ? 0 : 200);
    for (pollfd& file : files) {
      if (file.fd < 0 || file.revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t count = ::read(file.fd, buffer.data(), buffer.size());
      if (count > 0) {
        (file.fd == out.read ? outcome.out : outcome.error)
            .append(buffer.data(), static_cast<std::size_t>(count));
      } else {  // the end; a terminal whose other side is closed says EIO
        file.fd = -1;
      }
    }
  }
  ::close(out.read);
  ::close(error.read);
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

std::string example(const std::string& name) {
  return std::string(TESSERA_EXAMPLE_DATA "/") + name;
}

std::string tensor_bytes(const std::string& file, const std::string& tensor) {
  const io::Array array = io::SafetensorsFile(file).load(tensor);
  return {reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()};
}

}  // namespace tessera::testing
