package app_test

import (
	"context"
	"net/http"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// ask asks a running projector, and returns the status of the answer.
func ask(ctx context.Context, p *projector, query string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.AdminAddr()+"/wait?"+query, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func TestWait_AWriterWaitsUntilItsEventCanBeRead(t *testing.T) {
	t.Parallel()
	_, database := servers.Mongo(t, nil)
	projections, err := projection.Parse("test.yaml", []byte(counting+`
- name: totals
  version: 3
  collection: totals
  key: '"all"'
  on:
    Happened:
      inc: {events: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, configured(t, "wait", database), projections)
	for query, want := range map[string]int{
		"version=1&projection=orders":                          http.StatusBadRequest,
		"aggregate=a&projection=orders":                        http.StatusBadRequest,
		"aggregate=a&version=x&projection=orders":              http.StatusBadRequest,
		"aggregate=a&version=1":                                http.StatusBadRequest,
		"aggregate=a&version=1&projection=none":                http.StatusBadRequest,
		"aggregate=a&version=1&projection=orders&timeout=1":    http.StatusBadRequest,
		"aggregate=a&version=1&projection=orders&timeout=26s":  http.StatusBadRequest,
		"aggregate=a&version=-1&projection=orders":             http.StatusBadRequest,
		"aggregate=a&version=1&projection=orders&timeout=50ms": http.StatusGatewayTimeout,
		"aggregate=a&version=1&projection=totals&timeout=50ms": http.StatusGatewayTimeout,
	} {
		if got, err := ask(t.Context(), p, query); err != nil || got != want {
			t.Errorf("%s: got %d and %v, want %d", query, got, err, want)
		}
	}
	answers := make(chan int, 2)
	for _, name := range []string{"orders", "totals"} {
		go func() {
			var code int
			// The test machine may be slow: ask again as a writer would.
			for code != http.StatusOK && t.Context().Err() == nil {
				code, _ = ask(t.Context(), p, "aggregate=a&version=3&timeout=20s&projection="+name)
			}
			answers <- code
		}()
	}
	send(t, "wait", happened("a", 1, 3)...)
	for range 2 {
		if got := <-answers; got != http.StatusOK {
			t.Errorf("version 3: got %d, want it readable", got)
		}
	}
	for query, want := range map[string]int{
		"aggregate=a&version=2&projection=orders":              http.StatusOK,
		"aggregate=a&version=4&projection=orders&timeout=50ms": http.StatusGatewayTimeout,
		"aggregate=b&version=1&projection=orders&timeout=50ms": http.StatusGatewayTimeout,
	} {
		if got, err := ask(t.Context(), p, query); err != nil || got != want {
			t.Errorf("%s: got %d and %v, want %d", query, got, err, want)
		}
	}
}

// A source that numbers no versions is waited for by the cluster time of the write, as its
// reply tells it, or by the position of the change.
func TestWait_ByPositionWhereTheSourceNumbersNoVersions(t *testing.T) {
	t.Parallel()
	_, database := servers.Mongo(t, nil)
	p := start(t, configured(t, "wait-position", database), projection.Projections{projection.Latest{Collection: "latest"}})
	at := func(seconds uint32) contract.Event {
		e := event("a", int64(seconds), "Happened", `{}`)
		e.Version, e.Position = contract.Version{}, contract.StreamPosition(seconds, 7, "82AB")
		e.Sequence = contract.SequenceOf(e.Version, e.Position)
		return e
	}
	numbered := event("n", 1, "Happened", `{}`)
	send(t, "wait-position", at(0x6921d1e1), at(0x6921d1e3), numbered)
	until(t, "the events are applied", func() bool { return p.Status().Applied == 3 })
	for query, want := range map[string]int{
		"aggregate=a&position=6921d1e300000007":              http.StatusOK, // that of the last write
		"aggregate=a&position=6921d1e300000007.82AB":         http.StatusOK,
		"aggregate=a&position=6921d1e200000001":              http.StatusOK, // of an earlier one
		"aggregate=a&position=6921d1e300000008&timeout=50ms": http.StatusGatewayTimeout,
		"aggregate=b&position=6921d1e300000007&timeout=50ms": http.StatusGatewayTimeout,
		"aggregate=n&position=6921d1e300000007&timeout=50ms": http.StatusGatewayTimeout, // it is numbered
		"aggregate=n&version=1":                              http.StatusOK,
		"aggregate=a&version=1&timeout=50ms":                 http.StatusGatewayTimeout, // it is not
		"aggregate=a&position=6921D1E300000007":              http.StatusBadRequest,
		"aggregate=a&position=6921d1e3":                      http.StatusBadRequest,
		"aggregate=a&position=6921d1e300000007.xy":           http.StatusBadRequest,
		"aggregate=a&position=6921d1e300000007&version=1":    http.StatusBadRequest,
		"aggregate=a": http.StatusBadRequest,
	} {
		if got, err := ask(t.Context(), p, query); err != nil || got != want {
			t.Errorf("%s: got %d and %v, want %d", query, got, err, want)
		}
	}
}
