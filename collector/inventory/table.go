package inventory

import "strings"

// table keeps each text once and gives it a small number, so that devices with
// the same attributes share them and can be compared by integers. A number
// means its text for as long as something holds it, and until sweep after that.
type table struct {
	numbers map[string]uint32
	texts   []string
	holders []uint32
	unheld  int      // texts that nothing holds, not yet swept
	vacant  []uint32 // swept numbers, to be given again
}

func newTable() *table { return &table{numbers: map[string]uint32{}} }

// hold gives the text's number; each hold is to be followed by one drop.
func (t *table) hold(text string) uint32 {
	if number, known := t.numbers[text]; known {
		if t.holders[number] == 0 {
			t.unheld--
		}
		t.holders[number]++
		return number
	}
	text = strings.Clone(text) // not the whole object that it came with
	number := t.vacancy()
	t.numbers[text], t.texts[number], t.holders[number] = number, text, 1
	return number
}

func (t *table) vacancy() uint32 {
	if last := len(t.vacant) - 1; last >= 0 {
		number := t.vacant[last]
		t.vacant = t.vacant[:last]
		return number
	}
	t.texts, t.holders = append(t.texts, ""), append(t.holders, 0)
	return uint32(len(t.texts) - 1)
}

func (t *table) drop(number uint32) {
	t.holders[number]--
	if t.holders[number] == 0 {
		t.unheld++
	}
}

func (t *table) text(number uint32) string { return t.texts[number] }

// littered says that much is kept that nothing holds.
func (t *table) littered() bool { return t.unheld > 1024 && t.unheld > len(t.numbers)/2 }

// sweep forgets what nothing holds. From then on a number may mean another
// text: whoever remembers numbers without holding them has to forget them.
func (t *table) sweep() {
	for text, number := range t.numbers {
		if t.holders[number] == 0 {
			delete(t.numbers, text)
			t.texts[number] = ""
			t.vacant = append(t.vacant, number)
		}
	}
	t.unheld = 0
}
