// Package spelling finds the name that a misspelt word most likely means. Its
// functions are pure.
package spelling

// Distance returns the number of bytes to insert, remove or replace between two
// words.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Nearest returns the known name that differs least from a word, the first of
// several; empty without known names.
func Nearest(word string, known []string) string {
	nearest, least := "", 0
	for _, name := range known {
		if d := Distance(word, name); nearest == "" || d < least {
			nearest, least = name, d
		}
	}
	return nearest
}
