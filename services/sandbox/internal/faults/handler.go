package faults

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
)

// maxBody bounds the body of a request.
const maxBody = 1 << 20

// listing is what GET answers.
type listing struct {
	Active []Report      `json:"active"`
	Kinds  []kindListing `json:"kinds"`
}

type kindListing struct {
	Name    string          `json:"name"`
	Does    string          `json:"does"`
	Example json.RawMessage `json:"example"`
}

// Handler serves the API at /faults. Requests that a browser sends for a page
// of another origin are refused.
func (r *Registry) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /faults", r.post)
	mux.HandleFunc("GET /faults", r.list)
	mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]int{"ended": r.EndAll()})
	})
	mux.HandleFunc("DELETE /faults/{id}", r.deleteOne)
	return http.NewCrossOriginProtection().Handler(mux)
}

func (r *Registry) post(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusBadRequest, "read the body: "+err.Error())
		return
	}
	report, err := r.Start(body)
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, err.Error())
	case report.ID == 0:
		answer(w, http.StatusOK, report)
	default:
		answer(w, http.StatusCreated, report)
	}
}

func (r *Registry) list(w http.ResponseWriter, _ *http.Request) {
	all := listing{Active: r.Active(), Kinds: []kindListing{}}
	for _, k := range r.kinds {
		all.Kinds = append(all.Kinds, kindListing{Name: k.Name, Does: k.Does, Example: json.RawMessage(k.Example)})
	}
	answer(w, http.StatusOK, all)
}

func (r *Registry) deleteOne(w http.ResponseWriter, request *http.Request) {
	id, err := strconv.Atoi(request.PathValue("id"))
	if err != nil || !r.End(id) {
		refuse(w, http.StatusNotFound, "no fault that lasts has this id")
		return
	}
	answer(w, http.StatusOK, map[string]int{"ended": 1})
}

func refuse(w http.ResponseWriter, status int, reason string) {
	answer(w, status, map[string]string{"error": reason})
}

func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client that has gone is nobody's loss
}
