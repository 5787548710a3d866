package amqpserver

import (
	"runtime"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

const (
	// outputHigh is how many bytes may wait to be written before pumps and the read loop pause.
	outputHigh = 1 << 20
	// closeTimeout bounds the writing of a close.
	closeTimeout = time.Second
	// outputKeep is the largest buffer kept for reuse.
	outputKeep = 1 << 20
)

// send appends a frame to the output. It needs c.mu; the caller flushes after unlocking.
func (c *conn) send(channel uint16, p amqp.Performative) {
	if c.closing {
		return
	}
	c.out = amqp.AppendFrame(c.out, amqp.FrameAMQP, channel, p)
}

// flush writes the output unless another goroutine is at it, which then writes what has been added as well.
func (c *conn) flush() {
	c.mu.Lock()
	if c.writing || len(c.out) == 0 {
		c.mu.Unlock()
		return
	}
	c.writing = true
	for len(c.out) > 0 && !c.broken {
		// Who is about to answer comes first: one call of the operating system is for all.
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
		buf := c.out
		c.out = c.spare[:0]
		c.flying = len(buf)
		limit := c.srv.cfg.WriteTimeout
		if c.closing {
			limit = min(limit, closeTimeout)
		}
		c.mu.Unlock()
		err := c.write(buf, limit)
		c.mu.Lock()
		c.flying = 0
		c.spare = nil
		if cap(buf) <= outputKeep {
			c.spare = buf
		}
		if err != nil {
			c.broken = true
			c.out = nil
			_ = c.nc.Close()
		}
		c.changed.Broadcast()
	}
	c.writing = false
	c.changed.Broadcast()
	c.mu.Unlock()
}

// settleOutput writes everything out, also what another goroutine has begun to write.
func (c *conn) settleOutput() {
	c.flush()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing {
		_ = c.nc.SetWriteDeadline(time.Now().Add(closeTimeout))
	}
	for c.writing {
		c.changed.Wait()
	}
}

func (c *conn) write(buf []byte, limit time.Duration) error {
	now := time.Now()
	c.lastWrite.Store(now.UnixNano())
	if err := c.nc.SetWriteDeadline(now.Add(limit)); err != nil {
		return err
	}
	_, err := c.nc.Write(buf)
	return err
}

// room waits until the output is below its limit. It needs c.mu and returns false when the connection is gone.
func (c *conn) room() bool {
	for len(c.out) > outputHigh && !c.broken && c.ctx.Err() == nil {
		if !c.writing {
			c.mu.Unlock()
			c.flush()
			c.mu.Lock()
			continue
		}
		c.changed.Wait()
	}
	return !c.broken && c.ctx.Err() == nil
}
