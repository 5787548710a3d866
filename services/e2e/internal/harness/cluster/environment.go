package cluster

import (
	"maps"
	"os"
	"slices"
)

func (c *Cluster) publisherEnv(e Endpoints) map[string]string {
	n := c.cfg.Names
	env := map[string]string{
		"MONGODB_URI":                  e.MongoURI,
		"SOURCE_DATABASE":              n.SourceDatabase,
		"SOURCE_COLLECTION":            n.SourceCollection,
		"STATE_DATABASE":               n.StateDatabase,
		"SERVICEBUS_CONNECTION_STRING": e.ServiceBus,
		"SERVICEBUS_TOPIC":             n.Topic,
		"LEASE_NAME":                   n.LeaseName,
		"LEASE_TTL":                    c.cfg.Lease.TTL.String(),
		"LEASE_HEARTBEAT":              c.cfg.Lease.Heartbeat.String(),
		"LEASE_RENEW_DEADLINE":         c.cfg.Lease.RenewDeadline.String(),
		"ADMIN_ADDR":                   "127.0.0.1:0",
	}
	maps.Copy(env, c.cfg.PublisherEnv)
	return env
}

func (c *Cluster) projectorEnv(e Endpoints) map[string]string {
	n := c.cfg.Names
	env := map[string]string{
		"READMODEL_MONGODB_URI":        e.MongoURI,
		"READMODEL_DATABASE":           n.ReadModelDatabase,
		"SERVICEBUS_CONNECTION_STRING": e.ServiceBus,
		"SERVICEBUS_TOPIC":             n.Topic,
		"SERVICEBUS_SUBSCRIPTION":      n.Subscription,
		"PROJECTIONS":                  c.cfg.Projections,
		"ADMIN_ADDR":                   "127.0.0.1:0",
	}
	maps.Copy(env, c.cfg.ProjectorEnv)
	return env
}

// environment returns settings as a process's environment, with the little of
// ours that any program may need. Nothing else of ours leaks in, so a setting in
// the shell of whoever runs this changes nothing.
func environment(settings map[string]string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		env = append(env, name+"="+settings[name])
	}
	return env
}
