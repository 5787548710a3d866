package sandboxtest

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asHolder makes the test binary start a sandbox, tell its address, and wait to be killed.
const asHolder = "TEST_AS_HOLDER"

func TestMain(m *testing.M) {
	if os.Getenv(asHolder) != "" {
		e, err := launched("")
		fmt.Fprintln(os.Stdout, e.MongoURI, err)
		select {}
	}
	goleak.VerifyTestMain(m)
}

func TestStart_ASandboxThatEndsAtOnceIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := launched("", "--no-such-flag"); err == nil || !strings.Contains(err.Error(), "-no-such-flag") {
		t.Errorf("got %v, want what the sandbox says", err)
	}
}

func TestStart_ASandboxEndsWithItsTestsHoweverTheyEnd(t *testing.T) {
	t.Parallel()
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), asHolder+"=1", "TMPDIR="+t.TempDir())
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	killed := holder.Process.Kill()
	_ = holder.Wait() // it was killed
	if err != nil || killed != nil {
		t.Fatalf("the holder says %q, %v, and ends with %v", line, err, killed)
	}
	sandbox, err := url.Parse(strings.Fields(line)[0])
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for listens(sandbox.Host) {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the sandbox still listens")
		}
	}
}

func listens(address string) bool {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}
