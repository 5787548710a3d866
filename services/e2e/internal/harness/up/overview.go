package up

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"slices"
	"time"

	"changerelay/services/e2e/internal/harness/cluster"
)

// answerTime is how long the page waits for what a service says of itself.
const answerTime = time.Second

//go:embed overview.html
var overviewHTML string

var overviewPage = template.Must(template.New("overview").Parse(overviewHTML))

// overview is a page that links those of all processes, on an address of this
// machine only.
type overview struct {
	c        *cluster.Cluster
	dir      string
	listener net.Listener
}

// process is a process as the page shows it.
type process struct {
	Name  string `json:"name"`
	Page  string `json:"page"`
	State string `json:"state"`
}

func newOverview(c *cluster.Cluster, dir string) (*overview, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the page: %w", err)
	}
	return &overview{c: c, dir: dir, listener: listener}, nil
}

func (o *overview) url() string { return "http://" + o.listener.Addr().String() + "/" }

// serve serves the page until ctx ends.
func (o *overview) serve(ctx context.Context) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", o.page)
	mux.HandleFunc("GET /state", o.state)
	server := http.Server{Handler: o.own(mux), ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(o.listener); !errors.Is(err, http.ErrServerClosed) {
		_ = server.Close() // the processes are at work all the same
	}
}

// own refuses requests under a name that somebody could register: they come from a
// page of the Web.
func (o *overview) own(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.Host); err != nil || host != "localhost" && net.ParseIP(host) == nil {
			http.Error(w, "use the address that was printed", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (o *overview) page(w http.ResponseWriter, r *http.Request) {
	e, n := o.c.Endpoints(), o.c.Names()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = overviewPage.Execute(w, map[string]any{ // the reader may have gone
		"Processes": o.processes(r.Context()), "Dir": o.dir,
		"Mongo": e.MongoURI, "Source": n.SourceDatabase + "." + n.SourceCollection, "ReadModels": n.ReadModelDatabase,
		"ServiceBus": e.ServiceBus, "Topic": n.Topic, "Subscription": n.Subscription,
	})
}

func (o *overview) state(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(o.processes(r.Context()))
}

func (o *overview) processes(ctx context.Context) []process {
	up := map[bool]string{true: "at work", false: "has ended"}
	all := []process{{Name: "sandbox", Page: o.c.Endpoints().SandboxStatusURL, State: up[o.c.Sandbox.Running()]}}
	for _, service := range slices.Concat(o.c.Publishers, o.c.Projectors) {
		page, _ := service.Page() // what has ended has none
		all = append(all, process{Name: service.Name, Page: page, State: said(ctx, service)})
	}
	return all
}

// said is what a service says of itself.
func said(ctx context.Context, service *cluster.Node) string {
	if !service.Running() {
		return "has ended"
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var status struct {
		State string `json:"state"`
	}
	code, body, err := service.Get(ctx, "/status")
	if err != nil || code != http.StatusOK || json.Unmarshal(body, &status) != nil {
		return "does not answer"
	}
	return status.State
}
