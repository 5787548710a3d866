package world

import (
	"encoding/json"
	"net/http"
)

// maxBody bounds the body of a request.
const maxBody = 1 << 20

// Handler serves the worlds at /world:
//
//	GET /world          the present world, and the names there are
//	PUT /world          changes it to the world that the body describes
//	PUT /world/{name}   changes it to a named one
//
// Requests that a browser sends for a page of another origin are refused.
func Handler(present func() World, change func(World)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /world", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"world": present(), "names": Names()})
	})
	set := func(w http.ResponseWriter, world World, err error) {
		if err != nil {
			answer(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
		change(world)
		answer(w, http.StatusOK, map[string]any{"world": world})
	}
	mux.HandleFunc("PUT /world", func(w http.ResponseWriter, r *http.Request) {
		world, err := Read(http.MaxBytesReader(w, r.Body, maxBody))
		set(w, world, err)
	})
	mux.HandleFunc("PUT /world/{name}", func(w http.ResponseWriter, r *http.Request) {
		world, err := Named(r.PathValue("name"))
		set(w, world, err)
	})
	return http.NewCrossOriginProtection().Handler(mux)
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
