package admin

import (
	"encoding/json"
	"io"
	"slices"
	"sync"

	"github.com/rs/zerolog"
)

// Trouble is a warning or an error of the log.
type Trouble struct {
	// At is when it was last logged.
	At      string `json:"time"`
	Level   string `json:"level"`
	Message string `json:"message"`
	Error   string `json:"error,omitempty"`
	// Times is how often it was logged with no other between.
	Times int `json:"times"`
}

// remembered is how many troubles are kept.
const remembered = 10

// Troubles is a log's writer that keeps the latest warnings and errors for the
// status, for whoever looks when they are over. It may be used from any goroutine.
type Troubles struct {
	log  io.Writer
	hide func(string) string

	mu     sync.Mutex
	latest []Trouble // guarded by mu; the latest first
}

var _ zerolog.LevelWriter = (*Troubles)(nil)

// NewTroubles passes each line on to log. What it keeps goes through hide, which
// takes secrets out.
func NewTroubles(log io.Writer, hide func(string) string) *Troubles {
	return &Troubles{log: log, hide: hide}
}

// Write passes a line on.
func (t *Troubles) Write(line []byte) (int, error) { return t.log.Write(line) }

// WriteLevel implements zerolog.LevelWriter.
func (t *Troubles) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	if level >= zerolog.WarnLevel && level < zerolog.NoLevel {
		t.keep(line)
	}
	return t.log.Write(line)
}

func (t *Troubles) keep(line []byte) {
	var one Trouble
	if json.Unmarshal([]byte(t.hide(string(line))), &one) != nil {
		return
	}
	one.Times = 1
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.latest) > 0 {
		if last := &t.latest[0]; last.Level == one.Level && last.Message == one.Message && last.Error == one.Error {
			last.At = one.At
			last.Times++
			return
		}
	}
	t.latest = slices.Insert(t.latest, 0, one)
	t.latest = t.latest[:min(len(t.latest), remembered)]
}

// Latest returns the latest troubles, the last one first.
func (t *Troubles) Latest() []Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.latest)
}
