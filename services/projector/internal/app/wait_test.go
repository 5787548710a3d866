package app_test

import (
	"context"
	"net/http"
	"testing"

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
