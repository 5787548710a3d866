package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/doctor"
	"changerelay/services/projector/internal/management"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/servicebus"
)

// doctorTimeout bounds the examination of one side.
const doctorTimeout = 30 * time.Second

// examination gathers what is found, and what could not be asked.
type examination struct {
	cfg     *config.Config
	redact  func(string) string
	Found   []doctor.Finding `json:"findings"`
	Unasked []doctor.Unasked `json:"not_examined"`
}

// Examine looks at the real entities with an operator's rights, and says what is
// wrong with them; o says how to reach the management API,
// where that is not as the settings say.
func Examine(ctx context.Context, stdout io.Writer, asJSON bool, o azcore.ClientOptions) error {
	cfg, projections, err := config.Load(ctx)
	if err != nil {
		return cli.Misconfigured(err)
	}
	if o.Transport == nil {
		if o, err = management.Options(cfg.ServiceBusManagementURL, cfg.ServiceBusConnectionString.Reveal()); err != nil {
			return err
		}
	}
	e := &examination{cfg: &cfg, redact: cfg.Redactor().Text, Found: []doctor.Finding{}, Unasked: []doctor.Unasked{}}
	e.subscription(ctx, o)
	if err := e.database(ctx, projections); err != nil {
		return err
	}
	if asJSON {
		err = json.NewEncoder(stdout).Encode(e)
	} else {
		e.print(stdout)
	}
	if err == nil && len(e.Found) > 0 {
		err = fmt.Errorf("%d finding(s)", len(e.Found))
	}
	return err
}

func (e *examination) print(w io.Writer) {
	for i, f := range e.Found {
		fmt.Fprintf(w, "%d. %s %s (%s)\n   %s\n", i+1, f.Subject, f.Problem, f.Severity, f.Fix)
	}
	for _, u := range e.Unasked {
		fmt.Fprintf(w, "-  %s: %s could not be asked: %s\n   it takes %s\n", u.Subject, u.What, u.Reason, u.Right)
	}
}

func (e *examination) settings() doctor.Settings {
	return doctor.Settings{LockMargin: e.cfg.LockMargin, RetryTime: e.cfg.RetryTime, TombstoneTTL: e.cfg.TombstoneTTL, Group: e.cfg.Group}
}

// subscription reads and judges the subscription and its topic.
func (e *examination) subscription(ctx context.Context, o azcore.ClientOptions) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	subject := fmt.Sprintf("subscription %q", e.cfg.Subscription)
	bus, err := e.cfg.Bus().Reach()
	var facts doctor.Subscription
	if err == nil {
		facts, err = servicebus.Examine(ctx, bus, o)
	}
	const right = "the claim Manage, or Azure Service Bus Data Owner"
	switch {
	case err == nil:
		e.Found = append(e.Found, doctor.JudgeSubscription(&facts, e.settings())...)
	case errors.Is(err, servicebus.ErrNotPermitted):
		e.Unasked = append(e.Unasked, doctor.Unasked{Subject: subject, What: "its properties", Reason: e.redact(err.Error()), Right: right})
	default:
		e.Found = append(e.Found, doctor.Finding{
			Subject: subject, Severity: doctor.Fault, Problem: "cannot be examined: " + e.redact(err.Error()),
			Fix: "create it with sessions if it is not there; otherwise check SERVICEBUS_* and the network",
		})
	}
}

// database reads and judges the read database.
func (e *examination) database(ctx context.Context, declared projection.Projections) error {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	return onAnyReadDatabase(ctx, e.cfg, declared, func(db *database) error {
		read, err := db.store.Examine(ctx, db.projections.Collections(), declaredViews(db.projections), e.cfg.TombstoneTTL)
		if err != nil {
			e.Found = append(e.Found, doctor.Finding{
				Subject: fmt.Sprintf("read database %q", e.cfg.Database), Severity: doctor.Fault,
				Problem: "cannot be examined: " + e.redact(err.Error()), Fix: "check READMODEL_MONGODB_URI, its user, and the network",
			})
			return nil
		}
		for i := range read.Unasked {
			read.Unasked[i].Reason = e.redact(read.Unasked[i].Reason)
		}
		e.Unasked = append(e.Unasked, read.Unasked...)
		e.Found = append(e.Found, doctor.JudgeDatabase(&read.Facts, e.settings())...)
		return nil
	})
}
