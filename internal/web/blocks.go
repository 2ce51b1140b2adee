package web

import "sync"

// blockSize is the number of bytes of one write, and of the blocks in which a page is
// stored.
const blockSize = 16 << 10

// blockPool keeps the blocks of responses that are not used any more, for the next ones:
// new blocks for each page would cost more than its text. It has as many blocks as the
// responses that ended since it was cleared.
type blockPool struct {
	mu   sync.Mutex
	free [][]byte
}

// get returns an empty block.
func (p *blockPool) get() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	if last < 0 {
		return make([]byte, 0, blockSize)
	}
	block := p.free[last]
	p.free[last] = nil
	p.free = p.free[:last]
	return block
}

// put takes blocks that are not read or written any more. Small ones are not kept.
func (p *blockPool) put(blocks [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, block := range blocks {
		if cap(block) == blockSize {
			p.free = append(p.free, block[:0])
		}
	}
}

// clear leaves the blocks to the garbage collector.
func (p *blockPool) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.free)
	p.free = p.free[:0]
}
