package sessionlink

import (
	"container/list"
	"context"
	"time"
)

// idleTime is how long nothing comes on a connection before who waits for a turn gets
// it all the same: what is expected has come already, or does not.
const idleTime = underWay

// turn is a receiver that waits until what it asks for comes in good time.
type turn struct {
	some    int64         // messages
	each    int64         // bytes of one, as far as the receiver knows
	bytes   int64         // set when it is granted
	granted chan struct{} // closed then
}

// enter waits until some messages may be asked for beside what is under way: in order,
// and one receiver always may. It returns how many bytes these are, which are under way
// then, until ahead says otherwise.
func (p *pace) enter(ctx context.Context, some int, each int64) (int64, error) {
	t := &turn{some: int64(some), each: each, granted: make(chan struct{})}
	p.mu.Lock()
	if p.waiting.Len() == 0 {
		p.idleFrom, p.idleSince = p.carried.Load(), time.Now()
	}
	place := p.waiting.PushBack(t)
	p.grant()
	p.mu.Unlock()
	idle := time.NewTicker(idleTime / 8)
	defer idle.Stop()
	for {
		select {
		case <-t.granted:
			return t.bytes, nil
		case <-idle.C:
			p.letIdle(time.Now())
		case <-ctx.Done():
			return p.leave(ctx, t, place)
		}
	}
}

// leave takes back who waits, unless its turn has come.
func (p *pace) leave(ctx context.Context, t *turn, place *list.Element) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-t.granted:
		return t.bytes, nil
	default:
	}
	p.waiting.Remove(place)
	p.grant()
	return 0, context.Cause(ctx)
}

// letIdle gives the first who waits its turn where nothing has come for idleTime, nor
// a turn been given so.
func (p *pace) letIdle(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if carried := p.carried.Load(); carried != p.idleFrom {
		p.idleFrom, p.idleSince = carried, now
		return
	}
	if p.waiting.Len() > 0 && now.Sub(p.idleSince) >= idleTime {
		p.idleSince = now
		p.let(p.waiting.Front().Value.(*turn))
	}
}

// grant gives those who wait their turn, in order, as far as the window goes. Called
// with mu held.
func (p *pace) grant() {
	for first := p.waiting.Front(); first != nil; first = p.waiting.Front() {
		t := first.Value.(*turn)
		if p.expected > 0 && p.expected+t.some*p.weight(t.each) > p.window() {
			return
		}
		p.let(t)
	}
}

// let gives the first who waits its turn. Called with mu held.
func (p *pace) let(t *turn) {
	p.waiting.Remove(p.waiting.Front())
	t.bytes = t.some * p.weight(t.each)
	p.expected += t.bytes
	p.receiving++
	close(t.granted)
}
