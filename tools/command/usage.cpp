#include "tools/command/usage.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "tools/io/error.hpp"

namespace tessera::tools {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kIndent = 24;  // of what the names on the left mean

/// `text` in lines that begin in column `indent`; the first one is begun at `column`.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t column) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find(' '), text.size());
    if (column > indent && column + 1 + size > kColumns) {
      lines += fmt::format("\n{:{}}", "", indent);
      column = indent;
    }
    if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines += text.substr(0, size);
    column += size;
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return lines + "\n";
}

/// "  --name N              What it is.": on the next line where the name is long.
std::string entry(const std::string& name, std::string_view meaning) {
  std::string text = "  " + name;
  text += text.size() + 2 > kIndent ? fmt::format("\n{:{}}", "", kIndent)
                                    : std::string(kIndent - text.size(), ' ');
  return text + wrapped(meaning, kIndent, kIndent);
}

/// "-o, --output OUT".
std::string names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (option.get_items_expected_max() > 0) text += " " + option.get_type_name();
  return text;
}

bool takes_several(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

std::string usage(const CLI::App& app, const std::string& name) {
  std::string text = "Usage: " + name;
  if (app.get_require_subcommand_min() > 0) text += " SUBCOMMAND";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional())
      text += " " + option->get_name(true) + (takes_several(*option) ? "..." : "");
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_required() && !option->get_positional())
      text += fmt::format(" {} {}", option->get_name(), option->get_type_name());
  }
  return text + " [OPTIONS]\n";
}

/// Those that must be given first, --help not at all.
std::string options_of(const CLI::App& app) {
  std::string required;
  std::string rest;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option == app.get_help_ptr()) continue;
    (option->get_required() ? required : rest) +=
        entry(names_of(*option), option->get_description());
  }
  return required + rest;
}

bool is_flag(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

/// "tessera check".
std::string full_name(const CLI::App& app) {
  const std::string name = subcommand_of(app);
  return app.get_name() + (name.empty() ? "" : " ") + name;
}

/// An option that has no value, or more than one; empty if there is none. The parser begins its
/// message with the option.
std::string mismatch(const CLI::App& app, const std::string& message) {
  std::vector<const CLI::App*> parts{&app};
  for (const CLI::App* subcommand : app.get_subcommands()) parts.push_back(subcommand);
  for (const CLI::App* part : parts) {
    for (const CLI::Option* option : part->get_options()) {
      const std::string name = option->get_name();
      if (name.empty() || !message.starts_with(name + ": ")) continue;
      if (option->count() > 1)
        return fmt::format("{}: is given {} times; must be given once", name, option->count());
      return fmt::format("{}: has no value; must be {} {}", name, name, option->get_type_name());
    }
  }
  return {};
}

std::string text_of(const CLI::App& app, const CLI::ParseError& error) {
  const std::string name = subcommand_of(app);
  const std::vector<std::string> rest = app.remaining(true);
  if (name.empty() && !rest.empty() && !is_flag(rest.front())) {
    return fmt::format("'{}' is no subcommand; must be info, run, check or bench",
                       io::printable(rest.front()));
  }
  if (const auto flag = std::ranges::find_if(rest, is_flag); flag != rest.end()) {
    return fmt::format("{} is no option of {}", io::printable(flag->substr(0, flag->find('='))),
                       full_name(app));
  }
  if (name.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    return "a subcommand is required: info, run, check or bench";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    if (const std::string text = mismatch(app, error.what()); !text.empty()) return text;
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !rest.empty()) {
    return fmt::format("'{}' is one word too many; {} takes options only",
                       io::printable(rest.front()), full_name(app));
  }
  return error.what();
}

}  // namespace

std::string help_text(const CLI::App& app, const std::string& name) {
  std::string text = wrapped(app.get_description(), 0, 0) + "\n" + usage(app, name);
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional())
      text += "\n" + entry(option->get_name(true), option->get_description());
  }
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  if (!subcommands.empty()) text += "\nSubcommands:\n";
  for (const CLI::App* subcommand : subcommands)
    text += entry(subcommand->get_name(), subcommand->get_description());
  if (!subcommands.empty()) text += "\n" + name + " SUBCOMMAND --help explains each.\n";
  const CLI::App* const parent = app.get_parent();
  text += "\nOptions:\n" + options_of(app) + (parent != nullptr ? options_of(*parent) : "") +
          entry(names_of(*app.get_help_ptr()), app.get_help_ptr()->get_description());
  return text + "\n" + wrapped(app.get_footer(), 0, 0);
}

std::string subcommand_of(const CLI::App& app) {
  return app.get_subcommands().empty() ? "" : app.get_subcommands().front()->get_name();
}

std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  return fmt::format("{} (see {} --help)", text_of(app, error), full_name(app));
}

}  // namespace tessera::tools
