package faults_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/sandbox/internal/faults"
)

type lasting struct {
	Name  string          `json:"name"`
	Delay faults.Duration `json:"delay"`
}

// example is a registry with a fault that is over at once and one that lasts,
// whose present delay it returns as well.
func example() (*faults.Registry, *atomic.Int64) {
	var delay atomic.Int64
	return faults.New(
		faults.NewKind("example.lasting", "Lasts.", `{"kind":"example.lasting","delay":"1s"}`, func(p lasting) (faults.Effect, error) {
			if p.Delay == 0 {
				return faults.Effect{}, errors.New("no delay")
			}
			delay.Store(int64(p.Delay))
			return faults.Effect{Affected: 2, End: func() { delay.Store(0) }}, nil
		}),
		faults.NewKind("example.at-once", "Is over.", `{"kind":"example.at-once"}`, func(struct{}) (faults.Effect, error) {
			return faults.Effect{Affected: 3}, nil
		}),
	), &delay
}

// call makes one request and returns the status and the decoded body.
func call(t *testing.T, r *faults.Registry, method, path, body string, header ...string) (int, map[string]any) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	r.Handler().ServeHTTP(recorder, request)
	var decoded map[string]any
	if recorder.Header().Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(recorder.Body.Bytes(), &decoded); err != nil {
			t.Fatalf("got body %q: %v", recorder.Body, err)
		}
	}
	return recorder.Code, decoded
}

func TestFaults_AFaultThatLastsIsListedAndEnded(t *testing.T) {
	t.Parallel()
	r, delay := example()
	status, started := call(t, r, http.MethodPost, "/faults", `{"kind":"example.lasting", "delay":"20ms"}`)
	if status != http.StatusCreated || started["id"] != 1.0 || started["affected"] != 2.0 || delay.Load() != int64(20*time.Millisecond) {
		t.Errorf("got status %d, answer %v and delay %d, want 201, id 1, 2 affected and 20 ms", status, started, delay.Load())
	}
	if _, all := call(t, r, http.MethodGet, "/faults", ""); len(all["active"].([]any)) != 1 || len(all["kinds"].([]any)) != 2 {
		t.Errorf("got listing %v, want the fault and both kinds", all)
	}
	if status, ended := call(t, r, http.MethodDelete, "/faults/1", ""); status != http.StatusOK || ended["ended"] != 1.0 || delay.Load() != 0 {
		t.Errorf("got status %d, answer %v and delay %d, want 200, one ended and none", status, ended, delay.Load())
	}
	if status, _ := call(t, r, http.MethodDelete, "/faults/1", ""); status != http.StatusNotFound {
		t.Errorf("got status %d for a fault that has ended, want 404", status)
	}
}

func TestFaults_AFaultThatIsOverHasNoID(t *testing.T) {
	t.Parallel()
	r, _ := example()
	status, answer := call(t, r, http.MethodPost, "/faults", `{"kind":"example.at-once"}`)
	if _, has := answer["id"]; status != http.StatusOK || has || answer["affected"] != 3.0 || len(r.Active()) != 0 {
		t.Errorf("got status %d, answer %v and %v active, want 200, no id, 3 affected and none", status, answer, r.Active())
	}
}

func TestFaults_AllFaultsAreEndedTogether(t *testing.T) {
	t.Parallel()
	r, delay := example()
	call(t, r, http.MethodPost, "/faults", `{"kind":"example.lasting", "delay":"1s"}`)
	call(t, r, http.MethodPost, "/faults", `{"kind":"example.lasting", "delay":"2s"}`)
	if _, answer := call(t, r, http.MethodDelete, "/faults", ""); answer["ended"] != 2.0 || delay.Load() != 0 || len(r.Active()) != 0 {
		t.Errorf("got %v, delay %d and %v active, want two ended and nothing left", answer, delay.Load(), r.Active())
	}
}

func TestFaults_AFaultEndsByItselfAfterItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, delay := example()
		call(t, r, http.MethodPost, "/faults", `{"kind":"example.lasting", "delay":"1s", "for":"1m"}`)
		time.Sleep(time.Minute - time.Nanosecond) //nolint:forbidigo // in a bubble
		synctest.Wait()
		if delay.Load() == 0 || len(r.Active()) != 1 {
			t.Errorf("got delay %d and %v active within the time, want the fault", delay.Load(), r.Active())
		}
		time.Sleep(time.Nanosecond) //nolint:forbidigo // in a bubble
		synctest.Wait()
		if delay.Load() != 0 || len(r.Active()) != 0 {
			t.Errorf("got delay %d and %v active after the time, want none", delay.Load(), r.Active())
		}
	})
}

func TestFaults_AWrongBodyIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	for body, reason := range map[string]string{
		`{"kind":"other"}`: "there are example.at-once, example.lasting",
		`{"kind":"example.lasting","delay":"1s","depth":1}`:     "depth",
		`{"kind":"example.lasting","delay":"soon"}`:             "soon",
		`{"kind":"example.lasting","delay":"-1s"}`:              "negative",
		`{"kind":"example.lasting","delay":"1s","for":"-1s"}`:   "negative",
		`{"kind":"example.lasting"}`:                            "no delay",
		`{"kind":"example.at-once"} {"kind":"example.at-once"}`: "more than one",
		`nonsense`: "read the fault",
		`{"kind":"` + strings.Repeat("x", 1<<20) + `"}`: "too large",
	} {
		r, _ := example()
		status, answer := call(t, r, http.MethodPost, "/faults", body)
		if text, _ := answer["error"].(string); status != http.StatusBadRequest || !strings.Contains(text, reason) || len(r.Active()) != 0 {
			t.Errorf("%.60s: got status %d and answer %v, want 400 and %q", body, status, answer, reason)
		}
	}
}

func TestFaults_APageOfAnotherOriginCannotStartFaults(t *testing.T) {
	t.Parallel()
	r, _ := example()
	status, _ := call(t, r, http.MethodPost, "/faults", `{"kind":"example.lasting","delay":"1s"}`, "Sec-Fetch-Site", "cross-site")
	if status != http.StatusForbidden || len(r.Active()) != 0 {
		t.Errorf("got status %d and %v active, want 403 and none", status, r.Active())
	}
}
