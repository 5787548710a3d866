package watch

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
)

// Bounds of /wait. The port cuts an answer off after half a minute.
const (
	maxWaiters  = 64
	maxWait     = 25 * time.Second
	defaultWait = 5 * time.Second
	firstLook   = 10 * time.Millisecond
	slowestLook = 250 * time.Millisecond
	// lookTime is how long the last look may take beyond the timeout.
	lookTime = 3 * time.Second
)

// Waiter answers GET /wait: whoever has written an event asks when it can be
// read. It looks at the read model itself, so any replica can answer.
type Waiter struct {
	store       *readmodel.Store
	projections projection.Projections
	places      chan struct{} // taken by those who wait
}

// NewWaiter answers /wait from the read models of the projections.
func NewWaiter(store *readmodel.Store, projections projection.Projections) *Waiter {
	return &Waiter{store, projections, make(chan struct{}, maxWaiters)}
}

// question is what a request asks.
type question struct {
	projection projection.Projection
	aggregate  string
	sequence   contract.Sequence
	timeout    time.Duration
}

// ServeHTTP answers 200 once the read model has the version, 504 when it has not
// within the timeout, 400 for a question that cannot be answered, 429 when too
// many wait, and 503 when the read model cannot be asked.
func (w *Waiter) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	q, problem := w.question(r)
	if problem != "" {
		answer(out, http.StatusBadRequest, problem)
		return
	}
	select {
	case w.places <- struct{}{}:
		defer func() { <-w.places }()
	default:
		out.Header().Set("Retry-After", "1")
		answer(out, http.StatusTooManyRequests, "too many wait")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), q.timeout+lookTime)
	defer cancel()
	reached, err := w.until(ctx, q)
	switch {
	case err != nil:
		answer(out, http.StatusServiceUnavailable, "the read model cannot be asked")
	case !reached:
		answer(out, http.StatusGatewayTimeout, "the read model does not have it yet")
	default:
		answer(out, http.StatusOK, "")
	}
}

// question reads a request, or says what is wrong with it.
func (w *Waiter) question(r *http.Request) (q question, problem string) {
	values := r.URL.Query()
	q = question{aggregate: values.Get("aggregate"), timeout: defaultWait}
	if q.aggregate == "" {
		return q, "aggregate is missing"
	}
	if q.sequence, problem = sequenceOf(values.Get("version"), values.Get("position")); problem != "" {
		return q, problem
	}
	if text := values.Get("timeout"); text != "" {
		var err error
		if q.timeout, err = time.ParseDuration(text); err != nil || q.timeout <= 0 || q.timeout > maxWait {
			return q, "timeout is not a duration up to " + maxWait.String()
		}
	}
	name := values.Get("projection")
	if name == "" && len(w.projections) > 1 {
		return q, "projection is missing, and there are several"
	}
	for _, p := range w.projections {
		v, _ := projection.VersionOf(p)
		if name == "" || p.Name() == name || v.Projection == name {
			q.projection = p
			return q, ""
		}
	}
	return q, "there is no such projection"
}

// sequenceOf is the lowest sequence of an event of a version, or at or behind a position,
// which may be the cluster time alone: the token behind it sorts above that.
func sequenceOf(version, position string) (s contract.Sequence, problem string) {
	switch {
	case (version == "") == (position == ""):
		return "", "one of version and position is needed"
	case version != "":
		n, err := strconv.ParseInt(version, 10, 64)
		if err != nil || n < 0 {
			return "", "version is not a whole number"
		}
		return contract.SequenceOf(contract.VersionOf(n), ""), ""
	}
	whole := position
	if !strings.Contains(position, ".") {
		whole += ".00"
	}
	if _, _, err := contract.Position(whole).ClusterTime(); err != nil {
		return "", err.Error()
	}
	return contract.SequenceOf(contract.Version{}, contract.Position(position)), ""
}

// until looks at the read model, more and more rarely, until it has the version.
func (w *Waiter) until(ctx context.Context, q question) (bool, error) {
	end := time.Now().Add(q.timeout)
	for pause := firstLook; ; pause = min(2*pause, slowestLook) {
		reached, err := w.reached(ctx, q)
		left := time.Until(end)
		if reached || err != nil || left <= 0 {
			return reached, err
		}
		timer := time.NewTimer(min(pause, left))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, context.Cause(ctx)
		case <-timer.C:
		}
	}
}

func (w *Waiter) reached(ctx context.Context, q question) (bool, error) {
	if projection.Keyed(q.projection) {
		return w.store.Writes.ReachedKeyed(ctx, q.projection.Name(), q.aggregate, q.sequence)
	}
	return w.store.Writes.Reached(ctx, q.projection.Collections()[0], q.aggregate, q.sequence)
}

func answer(out http.ResponseWriter, code int, problem string) {
	out.Header().Set("Content-Type", "application/json")
	out.Header().Set("Cache-Control", "no-store")
	out.WriteHeader(code)
	// The reader went away: there is nobody left to tell.
	_ = json.NewEncoder(out).Encode(struct {
		Readable bool   `json:"readable"`
		Problem  string `json:"problem,omitempty"`
	}{problem == "", problem})
}
