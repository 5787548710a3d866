package relay

import "time"

// mebibyte is what Config.SendTimeout is for.
const mebibyte = 1 << 20

// load bounds how many bytes are under way to the topic together: to what goes over in
// half the time that a send has, so that each is in time though the others of its
// connection take turns with it. How fast that is tells what was accepted in the last
// second; a MiB in Config.SendTimeout it is at least. A larger send goes alone.
//
// It is guarded by the breaker's lock.
type load struct {
	timeout  time.Duration // Config.SendTimeout
	underWay int
	meter    meter // of the bytes that were accepted
}

// fits reports whether a send of size bytes may begin.
func (l *load) fits(now time.Time, size int) bool {
	seconds := l.timeout.Seconds()
	rate := max(float64(l.meter.lastSecond(now)), mebibyte/seconds)
	return l.underWay == 0 || float64(l.underWay+size) <= rate*seconds/2
}

// begin returns the ticket of a send of size bytes that begins.
func (l *load) begin(now time.Time, t ticket, size int) ticket {
	t.began, t.size = now, size
	l.underWay += size
	return t
}

// end notes that a send has ended. Of one that took longer than a second, only a part
// was accepted in the last.
func (l *load) end(now time.Time, t ticket, accepted bool) {
	l.underWay -= t.size
	if accepted {
		l.meter.add(now, int(float64(t.size)/max(1, now.Sub(t.began).Seconds())))
	}
}
