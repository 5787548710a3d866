package amqpserver

import "time"

// lane runs tasks of one link in order, on a goroutine that lives as long as there are any. It is guarded by the
// connection's mu.
type lane struct {
	tasks   []func()
	spare   []func()
	running bool
}

// laneFlush is how long a lane works before it sends the answers it has collected.
const laneFlush = time.Millisecond

// enqueue adds a task to a lane. It needs c.mu. Tasks run without it and must not wait longer than the connection's
// context lives.
func (c *conn) enqueue(l *lane, task func()) {
	l.tasks = append(l.tasks, task)
	if l.running {
		return
	}
	l.running = true
	c.wg.Go(func() { c.runLane(l) })
}

func (c *conn) runLane(l *lane) {
	for {
		c.mu.Lock()
		tasks := l.tasks
		l.tasks, l.spare = l.spare[:0], nil
		if len(tasks) == 0 {
			l.running = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()

		since := time.Now()
		for i, task := range tasks {
			task()
			tasks[i] = nil
			if now := time.Now(); now.Sub(since) > laneFlush {
				c.flush()
				since = now
			}
		}
		c.flush()
		c.mu.Lock()
		l.spare = tasks
		c.mu.Unlock()
	}
}
