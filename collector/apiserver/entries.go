package apiserver

// objectCounter counts the objects and nulls of JSON as it comes: what takes more
// room once it is decoded.
type objectCounter struct {
	text, escaped bool
	objects       int
}

func (c *objectCounter) count(next []byte) {
	for _, b := range next {
		switch {
		case c.escaped:
			c.escaped = false
		case c.text:
			c.escaped, c.text = b == '\\', b != '"'
		case b == '"':
			c.text = true
		case b == '{' || b == 'n':
			c.objects++
		}
	}
}
