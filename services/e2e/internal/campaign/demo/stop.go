package demo

import (
	"context"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/harness/cluster"
)

// stop asks services to stop and waits for them; it notes those that do not do
// so in good order.
func (d *Demo) stop(ctx context.Context, services ...*cluster.Node) {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for _, err := range cluster.Stop(ctx, services...) {
		d.nemesis.disorderly.Add("%v", err)
	}
}

// nodes tells what every process took of the machine. It stops the sandbox, for
// a process's processor time is known when it has ended.
func (d *Demo) nodes(ctx context.Context) []report.Node {
	if d.cluster.Sandbox != nil {
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		// How it ends says nothing of the relay.
		_ = cluster.Stop(ctx, d.cluster.Sandbox)
	}
	var nodes []report.Node
	for _, n := range d.cluster.Nodes() {
		nodes = append(nodes, d.node(n.Name, n.Usage()))
	}
	return append(nodes, d.node("this demo", cluster.Self()))
}

func (d *Demo) node(name string, u cluster.Usage) report.Node {
	written, _ := d.witness.Ledger.Counts()
	return report.Node{
		Name: name, ResidentBytes: u.ResidentBytes, CPUSeconds: u.CPU.Seconds(),
		CPUMicrosecondsPerEvent: float64(u.CPU.Microseconds()) / float64(max(written, 1)),
	}
}
