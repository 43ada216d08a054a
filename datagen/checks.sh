# Checks of the end state, sourced by test.sh. Each compares one path of the working directory with $tests/expected;
# the first that fails ends the script with the reward as it stands (0). POSIX tools only.

expected=$tests/expected
max_bytes=65536 # larger than any right answer; keeps a hostile file from stalling the verifier

fail() {
  echo "reward 0: $*" >&2
  exit 0
}

# A regular file of sane size, reached through no symbolic link (which could point at the expected data).
plain() {
  local rest=$1 part=.
  while [ -n "$rest" ]; do
    part=$part/${rest%%/*}
    [ -L "$part" ] && fail "$1: $part is a symbolic link"
    case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
  done
  [ -f "$1" ] || fail "$1 is missing or no regular file"
  [ -r "$1" ] || fail "$1 cannot be read"
  [ "$(wc -c < "$1")" -le "$max_bytes" ] || fail "$1 is larger than $max_bytes bytes"
}

# A verifier that lost its data must not compare nothing with nothing.
needs() { [ -e "$1" ] || fail "the verifier lacks $1"; }

# Prints the lines of standard input, the last one with its newline.
lines() { awk '{ print }'; }

# Prints "[section]key=value", one line each.
ini_leaves() {
  awk '
    function trim(s) { gsub(/^[ \t\r]+|[ \t\r]+$/, "", s); return s }
    { line = trim($0) }
    line ~ /^([#;].*)?$/ { next }
    line ~ /^\[.*\]$/ { section = line; next }
    { i = index(line, "="); print section trim(substr(line, 1, i - 1)) "=" trim(substr(line, i + 1)) }
  ' | sort
}

# Prints "path<tab>value" for each leaf of a JSON text; fails when it is malformed.
json_leaves() {
  awk '
    function bad() { exit 1 }
    function skip() { while (substr(text, pos, 1) ~ /^[ \t\r\n]$/) pos++ }
    function take(pattern,    token) {
      if (!match(substr(text, pos), pattern)) bad()
      token = substr(text, pos, RLENGTH); pos += RLENGTH; return token
    }
    function expect(c) { skip(); if (substr(text, pos, 1) != c) bad(); pos++ }
    function peek() { skip(); return substr(text, pos, 1) }
    function items(path, close_with, keyed,    n, key) {
      pos++
      if (peek() == close_with) { pos++; print path "\t" (keyed ? "{}" : "[]"); return }
      for (n = 0; ; n++) {
        key = n
        if (keyed) { skip(); key = take("^\"([^\"\\\\]|\\\\.)*\""); expect(":") }
        value(path "/" key)
        if (peek() != ",") break
        pos++
      }
      expect(close_with)
    }
    function value(path,    c) {
      c = peek()
      if (c == "{") items(path, "}", 1)
      else if (c == "[") items(path, "]", 0)
      else if (c == "\"") print path "\t" take("^\"([^\"\\\\]|\\\\.)*\"")
      else print path "\t" take("^(true|false|null|-?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?)")
    }
    { text = text $0 "\n" }
    END { pos = 1; value(""); skip(); if (pos <= length(text)) bad() }
  ' | sort
}

# Prints the unpacked archive, cut off at a sane size.
unpacked() { gzip -dc < "$1" 2> /dev/null | head -c "$max_bytes"; }

same() {
  plain "$1"
  needs "$expected/$1"
  cmp -s "$1" "$expected/$1" || fail "$1 has the wrong content"
}

same_text() {
  plain "$1"
  needs "$expected/$1"
  cmp -s <(lines < "$1") <(lines < "$expected/$1") || fail "$1 has the wrong lines"
}

same_number() {
  plain "$1"
  needs "$expected/$1"
  local words=()
  read -r -d '' -a words < "$1"
  [ "${#words[@]}" -eq 1 ] || fail "$1 holds ${#words[@]} words, not one number"
  [ "${words[0]}" = "$(cat "$expected/$1")" ] || fail "$1 holds the wrong number"
}

same_json() {
  plain "$1"
  needs "$expected/$1"
  local got
  got=$(json_leaves < "$1") || fail "$1 is no JSON"
  [ "$got" = "$(json_leaves < "$expected/$1")" ] || fail "$1 holds the wrong values"
}

same_ini() {
  plain "$1"
  needs "$expected/$1"
  [ "$(ini_leaves < "$1")" = "$(ini_leaves < "$expected/$1")" ] || fail "$1 holds the wrong settings"
}

same_archive() {
  plain "$1"
  needs "$expected/$1.members"
  local members=$expected/$1.members listing wanted name
  listing=$(unpacked "$1" | tar -tf - 2> /dev/null) || fail "$1 is no gzipped tar file"
  wanted=$(cd "$members" && find . -type f | sed 's|^\./||' | sort)
  [ "$(sed -e 's|^\./||' -e '/\/$/d' -e '/^$/d' <<< "$listing" | sort)" = "$wanted" ] || fail "$1 holds the wrong files"
  while IFS= read -r name; do
    case $name in '' | */) continue ;; esac
    unpacked "$1" | tar -xOf - "$name" 2> /dev/null | cmp -s - "$members/${name#./}" || fail "$1: $name has the wrong content"
  done <<< "$listing"
}

gone() {
  if [ -e "$1" ] || [ -L "$1" ]; then fail "$1 is still there"; fi
}
