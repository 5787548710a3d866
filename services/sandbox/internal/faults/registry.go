package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Registry starts faults and keeps those that last. Its methods are safe for
// concurrent use.
type Registry struct {
	kinds []Kind // by name

	mu     sync.Mutex
	lastID int
	active map[int]*active
}

// active is a fault that lasts.
type active struct {
	report Report
	end    func()
	timer  *time.Timer // nil: until it is ended
}

// Report is a fault that was started.
type Report struct {
	// ID names a fault that lasts; 0: it is over.
	ID       int             `json:"id,omitempty"`
	Affected int             `json:"affected"`
	Since    time.Time       `json:"since"`
	Until    time.Time       `json:"until,omitzero"`
	Fault    json.RawMessage `json:"fault"` // the body it was started with
}

// New returns a registry of kinds, which have different names.
func New(kinds ...Kind) *Registry {
	kinds = slices.Clone(kinds)
	slices.SortFunc(kinds, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return &Registry{kinds: kinds, active: map[int]*active{}}
}

// Start starts the fault that a JSON body describes. Every error is one of the
// body.
func (r *Registry) Start(body []byte) (Report, error) {
	c, err := decodeCommon(body)
	if err != nil {
		return Report{}, fmt.Errorf("read the fault: %w", err)
	}
	at := slices.IndexFunc(r.kinds, func(k Kind) bool { return k.Name == c.Kind })
	if at < 0 {
		return Report{}, fmt.Errorf("no fault is of kind %q; there are %s", c.Kind, r.names())
	}
	effect, err := r.kinds[at].start(body)
	if err != nil {
		return Report{}, fmt.Errorf("start the fault %s: %w", c.Kind, err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return Report{}, fmt.Errorf("read the fault: %w", err)
	}
	report := Report{Affected: effect.Affected, Since: time.Now(), Fault: compact.Bytes()}
	if effect.End == nil {
		return report, nil
	}
	return r.keep(report, effect.End, time.Duration(c.For)), nil
}

func (r *Registry) names() string {
	var names []string
	for _, k := range r.kinds {
		names = append(names, k.Name)
	}
	return strings.Join(names, ", ")
}

// keep books a fault that lasts, for some time or, with 0, until it is ended.
func (r *Registry) keep(report Report, end func(), lasts time.Duration) Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastID++
	id := r.lastID
	report.ID = id
	a := &active{end: end}
	if lasts > 0 {
		report.Until = report.Since.Add(lasts)
		a.timer = time.AfterFunc(lasts, func() { r.End(id) })
	}
	a.report = report
	r.active[id] = a
	return report
}

// Active lists the faults that last, oldest first.
func (r *Registry) Active() []Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	reports := []Report{}
	for _, a := range r.active {
		reports = append(reports, a.report)
	}
	slices.SortFunc(reports, func(a, b Report) int { return a.ID - b.ID })
	return reports
}

// End ends a fault that lasts, and says whether there was one.
func (r *Registry) End(id int) bool {
	r.mu.Lock()
	a := r.active[id]
	delete(r.active, id)
	r.mu.Unlock()
	if a == nil {
		return false
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	a.end()
	return true
}

// EndAll ends all faults that last, latest first, and says how many.
func (r *Registry) EndAll() int {
	ended := 0
	for _, report := range slices.Backward(r.Active()) {
		if r.End(report.ID) {
			ended++
		}
	}
	return ended
}
