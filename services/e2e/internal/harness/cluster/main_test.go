package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// standIn is the environment variable that makes the test binary act as one of
// the programs of a cluster.
const standIn = "CLUSTER_TEST_STAND_IN"

func TestMain(m *testing.M) {
	if os.Getenv(standIn) != "" {
		os.Exit(actAs(os.Getenv(standIn)))
	}
	goleak.VerifyTestMain(m)
}

// actAs is a program with an admin port that tells its environment as its
// status, grows to 64 MiB, and stops with status 7 on SIGTERM.
func actAs(what string) int {
	if what == "sandbox" {
		fmt.Fprint(os.Stdout, "MONGODB_URI='mongodb://127.0.0.1:1/?replicaSet=rs0'\n",
			`SERVICEBUS_CONNECTION_STRING='Endpoint=sb://127.0.0.1:2;Key=it'\''s;'`, "\nready\n")
	}
	if what == "nothing" {
		return 3
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM) // before anybody can know that it runs
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	ballast := make([]byte, 64<<20)
	for page := 0; page < len(ballast); page += 4096 {
		ballast[page] = 1
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"instance": os.Getenv("INSTANCE_ID"), "role": os.Getenv("ROLE"), "term": len(os.Getenv("TERM_MARKS"))})
	})
	go func() { _ = http.Serve(listener, mux) }()
	out := bufio.NewWriter(os.Stderr)
	fmt.Fprintf(out, "{\"level\":\"info\",\"addr\":%q,\"message\":\"admin listening\"}\n", listener.Addr())
	_ = out.Flush()
	<-stop
	runtime.KeepAlive(ballast)
	return 7
}
