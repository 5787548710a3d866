package statuspage

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// stuck is a database that answers nothing.
type stuck struct{}

func (stuck) Run(ctx context.Context, _ Login, _ bson.Raw) (bson.Raw, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// asked makes a request of a server without a listener.
func asked(t *testing.T, s *Server, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Host = "localhost"
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, r)
	return w
}

func TestHandler_AnAnswerHasItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Config: Config{Database: stuck{}, Faults: http.NotFoundHandler(), World: http.NotFoundHandler()}}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			began := time.Now()
			w := asked(t, s, method, "/documents/a/b", "{}")
			if took := time.Since(began); took != answerTimeout || w.Code != http.StatusGatewayTimeout {
				t.Errorf("%s: got status %d after %s, want 504 after %s", method, w.Code, took, answerTimeout)
			}
		}
	})
}

func TestHandler_BodiesAreShownByWhatTheyAre(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body, contentType, encoding, form, text string
	}{
		"nothing":                   {"", "", "", "text", ""},
		"text":                      {"a\tb\n", "", "", "text", "a\tb\n"},
		"JSON by its look":          {` {"a":1.0}`, "", "", "json", "{\n  \"a\": 1.0\n}"},
		"JSON by its type":          {"[]", "application/json; charset=utf-8", "", "json", "[]"},
		"no JSON after all":         {"{", "application/json", "", "text", "{"},
		"no BSON after all":         {"\x05\x00", "application/bson", "", "hex", "0500"},
		"no gzip after all":         {"plain", "", "gzip", "text", "plain"},
		"control characters":        {"\x1b[31m", "", "", "hex", "1b5b33316d"},
		"bytes that are no UTF-8":   {"\xff", "", "", "hex", "ff"},
		"a type that can't be read": {"a", ";", "", "text", "a"},
	} {
		if got := contentOf([]byte(test.body), test.contentType, test.encoding); got.Form != test.form || got.Text != test.text || got.Bytes != len(test.body) {
			t.Errorf("%s: got %+v, want %s %q", name, got, test.form, test.text)
		}
	}
}
