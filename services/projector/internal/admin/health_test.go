package admin

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestHealth_HealthIsAskedOfTheProcessItself(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	dead := errors.New("the loop stands")
	for name, tt := range map[string]struct {
		live  error
		ready error
		want  string
	}{
		"live":                        {},
		"live, though it cannot work": {ready: dead},
		"not live":                    {live: dead, want: "503"},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, Source{
				Live:  map[string]func() error{"loop": func() error { return tt.live }},
				Ready: map[string]func() error{"database": func() error { return tt.ready }},
			})
			_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			for _, addr := range []string{"127.0.0.1:" + port, ":" + port, "0.0.0.0:" + port} {
				err := CheckHealth(t.Context(), addr)
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("health at %s: got %v, want an error with %q, or none for an empty one", addr, err, tt.want)
				}
			}
		})
	}
}

func TestHealth_HealthOfNobodyIsAnError(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:1", "no address"} {
		if err := CheckHealth(t.Context(), addr); err == nil {
			t.Errorf("health at %q: got none, want an error", addr)
		}
	}
}
