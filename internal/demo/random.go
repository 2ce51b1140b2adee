package demo

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// newRandom returns a generator that depends only on the seed and the name.
func newRandom(seed uint64, name ...string) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(strings.Join(name, "/"))) // never fails
	return rand.New(rand.NewPCG(seed, hash.Sum64()))
}

// newUID is a random UUID of version 4.
func newUID(random *rand.Rand) types.UID {
	high, low := random.Uint64(), random.Uint64()
	high = high&^0xf000 | 0x4000
	low = low&^(0b11<<62) | 0b10<<62
	return types.UID(fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", high>>32, high>>16&0xffff, high&0xffff, low>>48, low&(1<<48-1)))
}

// suffix returns a suffix as Kubernetes appends it to generated names.
func suffix(random *rand.Rand) string { return letters(random, 5) }

// letters returns n characters of generated names: no vowels, so that they form
// no words, and no characters that look alike.
func letters(random *rand.Rand, n int) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	word := make([]byte, n)
	for i := range word {
		word[i] = alphabet[random.IntN(len(alphabet))]
	}
	return string(word)
}
