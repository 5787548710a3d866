package amqpserver

import (
	"fmt"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// sweep does for one connection what time asks for.
func (c *conn) sweep(now time.Time) {
	cfg, pace := &c.srv.cfg, c.srv.pace.Load()
	c.mu.Lock()
	if !c.opened || c.broken {
		c.mu.Unlock()
		return
	}
	if silent := now.Sub(time.Unix(0, c.lastRead.Load())); silent > cfg.IdleTimeout {
		c.mu.Unlock()
		c.log.Info().Dur("silent", silent).Msg("connection closed, nothing came from the peer")
		c.abort(fmt.Sprintf("The connection was inactive for more than the allowed %d milliseconds.", cfg.IdleTimeout.Milliseconds()))
		return
	}
	if c.links == 0 && now.Sub(c.linkless) > pace.LinklessTimeout {
		c.mu.Unlock()
		c.log.Debug().Msg("connection closed, it has had no link for too long")
		c.abort(fmt.Sprintf("The connection was inactive for more than the allowed %d milliseconds and is closed by container 'LinkTracker'.", pace.LinklessTimeout.Milliseconds()))
		return
	}
	for _, s := range c.sessions {
		for _, l := range s.links {
			l.sweep(now, pace.LinkIdleTimeout)
		}
	}
	if c.peer.idle > 0 && now.Sub(time.Unix(0, c.lastWrite.Load())) > c.peer.idle/2-sweepInterval && len(c.out) == 0 && !c.closing {
		// Section 2.4.5: an empty frame keeps the peer from closing.
		c.out = append(c.out, amqp.Heartbeat[:]...)
	}
	c.mu.Unlock()
	c.flush()
}

// abort closes the connection with an error; the read loop ends with it.
func (c *conn) abort(description string) {
	c.close(&amqp.Error{Condition: amqp.ConditionConnectionForced, Description: description})
	_ = c.nc.Close()
}

// sweep detaches a link that has been idle, or has lost its session or its token.
func (l *link) sweep(now time.Time, idle time.Duration) {
	if l.state != attached {
		return
	}
	if l.out != nil && l.out.session && l.out.lostSession(now) {
		l.detachWith(&amqp.Error{
			Condition:   entity.ConditionSessionLockLost,
			Description: "The session lock has expired on the MessageSession. Accept a new MessageSession.",
		})
		return
	}
	if l.needs != 0 {
		if err := l.s.c.authorize(l.address, l.needs, now); err != nil {
			l.detachWith(err)
			return
		}
	}
	if now.Sub(l.lastActive) > idle {
		l.detachWith(&amqp.Error{
			Condition: amqp.ConditionDetachForced,
			Description: fmt.Sprintf("The link '%s' is force detached by the broker because it was idle. Idle timeout: %s.",
				l.name, idle),
		})
	}
}

// lostSession tells whether the receiver's session is lost, by time or otherwise.
func (o *outgoing) lostSession(now time.Time) bool {
	if now.After(o.receiver.LockedUntil()) {
		return true
	}
	_, err := o.receiver.SessionState()
	return isCondition(err, entity.ConditionSessionLockLost)
}
