// SPDX-License-Identifier: Apache-2.0
//
// libedit is driven through its own interface, not the one that imitates readline. It reads through
// read_character() below, which a signal ends: libedit's own would go on.

#include "terminal/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cwchar>
#include <utility>

#include "language/escape.h"
#include "session/interrupts.h"

namespace pv2::shell {

/// One per LineEditor; libedit's callbacks find it through EL_CLIENTDATA.
class LineEditor::Impl {
 public:
  Impl(std::string prompt, Completer completer)
      : prompt_(std::move(prompt)), completer_(std::move(completer)) {
    // Text that is typed may be UTF-8; nothing else follows the locale.
    if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) {
      std::setlocale(LC_CTYPE, "C.UTF-8");
    }
    editor_ = ::el_init("pv2-shell", stdin, stdout, stderr);
    history_ = ::history_init();
    HistEvent event;
    ::history(history_, &event, H_SETSIZE, kHistoryLines);
    ::history(history_, &event, H_SETUNIQUE, 1);
    ::el_set(editor_, EL_CLIENTDATA, this);
    ::el_set(editor_, EL_PROMPT, prompt_of);
    ::el_set(editor_, EL_SIGNAL, 0);
    ::el_set(editor_, EL_EDITOR, "emacs");
    ::el_set(editor_, EL_HIST, ::history, history_);
    ::el_set(editor_, EL_GETCFN, read_character);
    ::el_set(editor_, EL_ADDFN, "complete", "Completes the word before the cursor", complete_word);
    ::el_set(editor_, EL_BIND, "^I", "complete", nullptr);
    ::el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  }
  ~Impl() {
    ::history_end(history_);
    ::el_end(editor_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Line read() {
    ::el_resize(editor_);  // the window may have another size by now
    // libedit would print the prompt first. Keys that come in between would then be taken by the
    // terminal: echoed twice, or lost.
    ::el_set(editor_, EL_PREP_TERM, 1);
    int length = 0;
    const char* const text = ::el_gets(editor_, &length);
    if (text == nullptr || length <= 0) {
      const bool interrupted = Interrupts::take() && !Interrupts::must_end();
      if (interrupted) ::el_reset(editor_);
      std::fputs("\n", stdout);
      return {interrupted ? Line::Kind::kInterrupted : Line::Kind::kEnd, {}};
    }
    std::string line(text, static_cast<std::size_t>(length));
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    return {Line::Kind::kLine, std::move(line)};
  }

  void remember(const std::string& line) {
    HistEvent event;
    ::history(history_, &event, H_ENTER, line.c_str());
  }

 private:
  static constexpr int kHistoryLines = 1000;

  static Impl& of(EditLine* editor) {
    Impl* self = nullptr;
    ::el_get(editor, EL_CLIENTDATA, reinterpret_cast<void**>(&self));
    return *self;
  }

  static char* prompt_of(EditLine* editor) { return of(editor).prompt_.data(); }

  // One character of the terminal. 0: its end; -1: a signal asks to give the line up.
  static int read_character(EditLine* /*editor*/, wchar_t* out) {
    std::mbstate_t state{};
    while (true) {
      pollfd readable{STDIN_FILENO, POLLIN, 0};
      if (::poll(&readable, 1, 100) <= 0) {  // looks at the flags when a signal came before poll()
        if (Interrupts::came()) return -1;
        continue;
      }
      char byte = '\0';
      const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
      if (got < 0 && errno == EINTR) {
        if (Interrupts::came()) return -1;
        continue;
      }
      if (got <= 0) return 0;
      const std::size_t used = std::mbrtowc(out, &byte, 1, &state);
      if (used == static_cast<std::size_t>(-2)) continue;  // more bytes of it follow
      if (used == static_cast<std::size_t>(-1)) {
        state = {};
        continue;  // no character; dropped
      }
      return 1;
    }
  }

  static unsigned char complete_word(EditLine* editor, int /*character*/) {
    const LineInfo* const info = ::el_line(editor);
    const std::string_view line(info->buffer,
                                static_cast<std::size_t>(info->cursor - info->buffer));
    const Completion completion = of(editor).completer_(line);
    const std::string_view word = line.substr(completion.begin);
    if (completion.candidates.empty()) return CC_REFRESH_BEEP;
    const std::string common = completion.common();
    if (common.size() > word.size()) {
      return ::el_insertstr(editor, common.substr(word.size()).c_str()) == -1 ? CC_REFRESH_BEEP
                                                                              : CC_REFRESH;
    }
    if (completion.candidates.size() == 1) return CC_REFRESH;
    std::fputs("\n", stdout);
    for (const std::string& each : completion.candidates) {
      std::fprintf(stdout, "%s\n", printable(each).c_str());
    }
    std::fflush(stdout);
    return CC_REDISPLAY;
  }

  std::string prompt_;
  Completer completer_;
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
};

LineEditor::LineEditor(std::string prompt, const std::vector<std::string>& history,
                       Completer completer)
    : impl_(std::make_unique<Impl>(std::move(prompt), std::move(completer))) {
  for (const std::string& line : history) impl_->remember(line);
}
LineEditor::~LineEditor() = default;

LineEditor::Line LineEditor::read() { return impl_->read(); }
void LineEditor::remember(const std::string& line) { impl_->remember(line); }

}  // namespace pv2::shell
