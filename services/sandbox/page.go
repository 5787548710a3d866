package sandbox

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/faults"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/browse"
	"changerelay/services/sandbox/internal/servicebus/sas"
	"changerelay/services/sandbox/internal/statuspage"
	"changerelay/services/sandbox/internal/world"
)

func (s *Sandbox) newPage(address string, keys sas.Keys) (*statuspage.Server, error) {
	namespace := browse.Namespace{Broker: s.broker, Keys: keys}
	return statuspage.New(statuspage.Config{
		Address: address, Database: localDatabase{s.mongo}, Namespace: namespace,
		Status:   func() any { return s.status(keys != nil) },
		Operator: func(who statuspage.Login) error { return s.mayOperate(who, namespace) },
		Faults:   s.faults.Handler(), World: world.Handler(s.World, s.SetWorld),
	})
}

// mayOperate lets everybody change faults and worlds, unless a side asks its
// clients who they are: then a user of the one will do, or a key of the other.
func (s *Sandbox) mayOperate(who statuspage.Login, namespace browse.Namespace) error {
	user := localDatabase{s.mongo}.authenticate(who)
	key := namespace.Authenticate(who)
	switch {
	case user == nil && key == nil,
		user == nil && s.mongo.Authorizes(),
		key == nil && namespace.Keys != nil:
		return nil
	case user != nil:
		return user
	}
	return key
}

// localDatabase runs the page's commands.
type localDatabase struct{ server *command.Server }

func (d localDatabase) Run(ctx context.Context, who statuspage.Login, command bson.Raw) (bson.Raw, error) {
	reply, err := d.server.Local(ctx, callerOf(who), command)
	return reply, refusal(err, who)
}

func (d localDatabase) authenticate(who statuspage.Login) error {
	return refusal(d.server.Authenticate(callerOf(who)), who)
}

func callerOf(who statuspage.Login) command.Caller {
	return command.Caller{User: who.Name, Password: who.Secret, DB: who.AuthSource}
}

// refusal gives an error of the server the status that says whose turn it is.
func refusal(err error, who statuspage.Login) error {
	e, ok := errors.AsType[*mongoerr.Error](err)
	if !ok {
		return err
	}
	status := http.StatusBadRequest
	switch e.Code {
	case mongoerr.AuthenticationFailed:
		status = http.StatusUnauthorized
	case mongoerr.Unauthorized:
		if status = http.StatusForbidden; who.Name == "" {
			return statuspage.Refuse(http.StatusUnauthorized,
				"%s: give user and password by basic authentication, and authSource where the user is not one of admin", e.Message)
		}
	case mongoerr.MaxTimeMSExpired:
		status = http.StatusGatewayTimeout
	case mongoerr.NotWritablePrimary, mongoerr.HostUnreachable:
		status = http.StatusServiceUnavailable
	}
	return statuspage.Refuse(status, "%s", e.Error())
}

// status is what /status answers.
type status struct {
	Service    string            `json:"service"`
	At         time.Time         `json:"at"`
	World      string            `json:"world"`
	Faults     []faults.Report   `json:"faults"`
	MongoDB    *command.Report   `json:"mongodb,omitempty"`
	ServiceBus *serviceBusStatus `json:"service_bus,omitempty"`
}

type serviceBusStatus struct {
	ConnectionString string          `json:"connection_string"`
	ManagementURL    string          `json:"management_url,omitempty"`
	Connections      int             `json:"connections"`
	Authentication   bool            `json:"authentication"`
	Namespace        broker.Snapshot `json:"namespace"`
}

func (s *Sandbox) status(checksKeys bool) status {
	report := s.mongo.Report()
	return status{
		Service: "sandbox", At: time.Now(), World: s.World().Name, Faults: s.faults.Active(), MongoDB: &report,
		ServiceBus: &serviceBusStatus{
			ConnectionString: s.ServiceBusConnectionString(), ManagementURL: s.ManagementURL(),
			Connections: s.amqp.Connections(), Authentication: checksKeys, Namespace: s.broker.Snapshot(),
		},
	}
}
