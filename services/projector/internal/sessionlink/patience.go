package sessionlink

import (
	"sync"
	"time"
)

// patienceMost bounds patience that has grown: half of a usual lock of one minute, which is
// when a renewal is sent.
const patienceMost = 30 * time.Second

// patience is how long nothing may be answered. It grows where answers take longer, so that
// a slow service is not taken for a silent one again and again.
type patience struct {
	least time.Duration // 0 waits for ever

	mu    sync.Mutex
	grown time.Duration // guarded by mu; less than least until it has grown
}

// lasts returns how long it lasts now; 0 is for ever.
func (p *patience) lasts() time.Duration {
	if p.least == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.least, p.grown)
}

// unanswered notes that a pair was let go.
func (p *patience) unanswered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grown = min(2*max(p.least, p.grown), patienceMost)
}

// answered notes how long an answer took.
func (p *patience) answered(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grown = min(2*took, patienceMost)
}
