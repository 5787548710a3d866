package statuspage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// Refusal is why something that was asked for is not done.
type Refusal struct {
	// Status is that of HTTP.
	Status int
	Reason string
}

func (r *Refusal) Error() string { return r.Reason }

// Refuse makes a Refusal whose reason is formatted as by fmt.Sprintf.
func Refuse(status int, format string, args ...any) *Refusal {
	return &Refusal{Status: status, Reason: fmt.Sprintf(format, args...)}
}

func wrong(format string, args ...any) *Refusal {
	return Refuse(http.StatusBadRequest, format, args...)
}

// answer writes JSON for people: as nothing takes it for HTML, angle brackets stay
// as they are.
func answer(w http.ResponseWriter, status int, body any) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // a client that has gone is nobody's loss
}
