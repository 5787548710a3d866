package statuspage

import (
	"context"
	"embed"
	"errors"
	"net/http"
)

//go:embed page.html page.css page.js look.js try.js
var files embed.FS

// policy lets the page load and ask for nothing but what is served here.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "page.html") })
	for _, name := range []string{"page.css", "page.js", "look.js", "try.js"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, name) })
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /status", answering(func(*http.Request) (int, any, error) { return http.StatusOK, s.Status(), nil }))
	mux.HandleFunc("GET /documents/{db}/{collection}", answering(s.findDocuments))
	mux.HandleFunc("POST /documents/{db}/{collection}", answering(s.insertDocument))
	mux.HandleFunc("GET /messages", answering(s.peekMessages))
	mux.HandleFunc("POST /messages", answering(s.sendMessage))
	mux.HandleFunc("GET /sessions", answering(s.listSessions))
	for path, handler := range map[string]http.Handler{"/faults": s.Faults, "/world": s.World} {
		mux.Handle(path, s.operated(handler))
		mux.Handle(path+"/", s.operated(handler))
	}
	return guarded(mux)
}

// guarded puts what holds for every request before a handler.
func guarded(next http.Handler) http.Handler {
	ownOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-store")
		if err := checkHost(r.Host); err != nil {
			refuse(w, err)
			return
		}
		if err := ownOrigin.Check(r); err != nil {
			refuse(w, Refuse(http.StatusForbidden, "%s: a page of another origin may change nothing here", err))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// operated asks whoever changes something for credentials.
func (s *Server) operated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if err := s.Operator(loginOf(r)); err != nil {
				refuse(w, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// answering serves what work returns: a status and a body, or an error.
func answering(work func(*http.Request) (status int, body any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, body, err := work(r)
		if err != nil {
			refuse(w, err)
			return
		}
		answer(w, status, body)
	}
}

// refuse answers with the reason. An error that is no Refusal is the sandbox's
// own, or the end of the time there was.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if errors.Is(err, context.DeadlineExceeded) {
		status = http.StatusGatewayTimeout
	}
	if r, ok := errors.AsType[*Refusal](err); ok {
		status = r.Status
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="sandbox", charset="UTF-8"`)
	}
	answer(w, status, map[string]string{"error": err.Error()})
}
