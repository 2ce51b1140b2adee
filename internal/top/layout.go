package top

// placed is a column with the width that it has got.
type placed struct {
	column
	width int // that it has
	wish  int // that its cells would fill
}

// arrange chooses the columns that fit a terminal and how wide each is. So many
// go, the least important first, that the rest has its least width; what is
// left over goes where text is cut. A limit of 0 is none: then each column is as
// wide as its widest cell.
func arrange(all []column, rows []*Row, look Look) []placed {
	table := make([]placed, len(all))
	for i, c := range all {
		table[i] = placed{column: c, wish: max(c.least, width(c.title))}
		switch {
		case look.Width <= 0:
			table[i].wish = max(widest(c, rows, look, 0), width(c.title))
		case c.most > 0:
			table[i].wish = max(widest(c, rows, look, c.most), width(c.title))
		}
		table[i].width = table[i].wish
		if c.place && uniform(c, rows, look) {
			table[i].rank += len(all)
		}
	}
	if look.Width <= 0 {
		return table
	}
	return widened(dropped(table, look.Width), look.Width)
}

// floor is the width below which a column is not worth having; a column whose
// cells are all shorter needs no more than they do.
func (p placed) floor() int { return min(max(p.least, width(p.title)), p.wish) }

// widest is how wide the widest cell is, up to a limit that is not 0.
func widest(c column, rows []*Row, look Look, limit int) int {
	most := 1
	for i := range rows {
		most = max(most, width(c.cell(look.Glyphs, rows[i], look.Bars)))
		if limit > 0 && most >= limit {
			return limit
		}
	}
	return most
}

// uniform reports whether all cells say the same.
func uniform(c column, rows []*Row, look Look) bool {
	for i := range rows {
		if c.cell(look.Glyphs, rows[i], look.Bars) != c.cell(look.Glyphs, rows[0], look.Bars) {
			return false
		}
	}
	return true
}

// dropped leaves out columns until the rest fits.
func dropped(table []placed, limit int) []placed {
	for len(table) > 1 {
		total, last := len(table)-1, 0
		for i, c := range table {
			total += c.floor()
			if c.rank > table[last].rank {
				last = i
			}
		}
		if total <= limit {
			return table
		}
		table = append(table[:last:last], table[last+1:]...)
	}
	return table
}

// widened shares out what the least widths leave, a column of the terminal at a
// time, so that nobody gets all of it.
func widened(table []placed, limit int) []placed {
	spare := limit - (len(table) - 1)
	for i := range table {
		table[i].width = min(table[i].floor(), limit)
		spare -= table[i].width
	}
	for given := true; given && spare > 0; {
		given = false
		for i := range table {
			if spare > 0 && table[i].width < table[i].wish {
				table[i].width++
				spare--
				given = true
			}
		}
	}
	return table
}
