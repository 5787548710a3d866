package session

// ending is how a hold ends. Where its last batch is settled behind it, its slot goes
// on meanwhile: the next accept is under way while the answers are, and while the
// session is given back.
type ending struct {
	done chan struct{} // closed when err is set
	err  error
}

// ended is a hold that has ended.
func ended(err error) *ending {
	e := &ending{make(chan struct{}), err}
	close(e.done)
	return e
}

// behind has finish end the hold, and returns at once.
func (e *Engine) behind(finish func() error) *ending {
	n := &ending{done: make(chan struct{})}
	e.endings.Go(func() {
		defer close(n.done)
		n.err = finish()
	})
	return n
}

// wait waits for the end, and returns why the session went back with messages not
// settled.
func (n *ending) wait() error {
	<-n.done
	return n.err
}

// over tells whether it has ended.
func (n *ending) over() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}
