package top

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Keystroke is a key that was pressed.
type Keystroke struct {
	Name KeyName
	Rune rune // of KeyRune
}

// KeyName identifies a key.
type KeyName int

// The keys that have a function.
const (
	KeyRune KeyName = iota // a character
	KeyUp
	KeyDown
	KeyPageUp
	KeyPageDown
	KeyHome
	KeyEnd
	KeyEnter
	KeyBackspace
	KeyEscape
	KeyInterrupt // Ctrl-C, Ctrl-D
)

// Keyboard decodes keys from the bytes of a terminal in raw mode. A sequence
// may arrive in pieces. It is not safe for concurrent use.
type Keyboard struct{ rest []byte }

// longestSequence is more than any key of a terminal sends; what is longer was
// none.
const longestSequence = 16

// Feed adds bytes and returns the complete keys.
func (k *Keyboard) Feed(bytes []byte) []Keystroke {
	k.rest = append(k.rest, bytes...)
	var keys []Keystroke
	for len(k.rest) > 0 {
		key, size, meant := next(k.rest)
		if size == 0 {
			if len(k.rest) <= longestSequence {
				break
			}
			size = len(k.rest)
		}
		k.rest = k.rest[size:]
		if meant {
			keys = append(keys, key)
		}
	}
	return keys
}

// Waiting reports whether a sequence has begun that may go on. It may also be
// the Escape key alone, if nothing follows.
func (k *Keyboard) Waiting() bool { return len(k.rest) > 0 }

// GiveUp treats an incomplete sequence as complete.
func (k *Keyboard) GiveUp() []Keystroke {
	escape := len(k.rest) == 1 && k.rest[0] == 0x1b
	k.rest = nil
	if escape {
		return []Keystroke{{Name: KeyEscape}}
	}
	return nil
}

// next returns the first key, its length in bytes (0: more are needed), and
// whether it has a function.
func next(bytes []byte) (Keystroke, int, bool) {
	switch first := bytes[0]; {
	case first == 0x1b:
		return sequence(bytes)
	case first == 0x03 || first == 0x04:
		return Keystroke{Name: KeyInterrupt}, 1, true
	case first == '\r' || first == '\n':
		return Keystroke{Name: KeyEnter}, 1, true
	case first == 0x7f || first == 0x08:
		return Keystroke{Name: KeyBackspace}, 1, true
	case !utf8.FullRune(bytes):
		return Keystroke{}, 0, false
	}
	r, size := utf8.DecodeRune(bytes)
	return Keystroke{Name: KeyRune, Rune: r}, size, r != utf8.RuneError && unicode.IsPrint(r)
}

// sequence reads one that an Escape byte begins.
func sequence(bytes []byte) (Keystroke, int, bool) {
	if len(bytes) == 1 {
		return Keystroke{}, 0, false
	}
	if bytes[1] == 0x1b { // the key itself, and another sequence
		return Keystroke{Name: KeyEscape}, 1, true
	}
	if bytes[1] != '[' && bytes[1] != 'O' { // Alt and another key
		return Keystroke{}, 2, false
	}
	for i := 2; i < len(bytes); i++ {
		if final := bytes[i]; final >= 0x40 && final <= 0x7e {
			name, meant := sequenceName(string(bytes[2:i]), final)
			return Keystroke{Name: name}, i + 1, meant
		}
	}
	return Keystroke{}, 0, false
}

// sequenceName identifies a key by the final byte, and by the number before ~.
// Modifiers, which follow a semicolon, are ignored.
func sequenceName(parameters string, final byte) (KeyName, bool) {
	number, _, _ := strings.Cut(parameters, ";")
	names := map[string]KeyName{
		"A": KeyUp, "B": KeyDown, "H": KeyHome, "F": KeyEnd,
		"1~": KeyHome, "7~": KeyHome, "4~": KeyEnd, "8~": KeyEnd, "5~": KeyPageUp, "6~": KeyPageDown,
	}
	key := string(final)
	if final == '~' {
		key = number + "~"
	}
	name, known := names[key]
	return name, known
}
