package stage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

// Topic is a topic with its subscriptions, all of which require sessions.
type Topic struct {
	// Name is short; Stage.Topic says what it is called on the stage.
	Name          string
	Partitioned   bool
	Deduplicates  bool
	Subscriptions []string
}

// Properties of the entities, as durations of ISO 8601.
const (
	duplicateWindow = "PT10M"
	lockDuration    = "PT1M"
	maxDeliveries   = 10
	maxMegabytes    = 5120 // as many as Standard has, which 5,000,000 small messages need
)

// create makes the topics. A topic keeps what no subscription takes from it
// nowhere, so only what is measured is carried.
func (s *Stage) create(ctx context.Context, topics []Topic) error {
	return s.manage(ctx, func(client *admin.Client) error {
		for _, t := range topics {
			if err := s.createTopic(ctx, client, t); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Stage) createTopic(ctx context.Context, client *admin.Client, t Topic) error {
	name := s.Topic(t.Name)
	properties := &admin.TopicProperties{EnablePartitioning: &t.Partitioned, RequiresDuplicateDetection: &t.Deduplicates, MaxSizeInMegabytes: new(int32(maxMegabytes))}
	if t.Deduplicates {
		properties.DuplicateDetectionHistoryTimeWindow = new(duplicateWindow)
	}
	if _, err := client.CreateTopic(ctx, name, &admin.CreateTopicOptions{Properties: properties}); err != nil {
		return fmt.Errorf("create topic %q: %w", name, err)
	}
	s.topics = append(s.topics, name)
	for _, subscription := range t.Subscriptions {
		_, err := client.CreateSubscription(ctx, name, subscription, &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{
			RequiresSession: new(true), LockDuration: new(lockDuration), MaxDeliveryCount: new(int32(maxDeliveries)),
		}})
		if err != nil {
			return fmt.Errorf("create subscription %q of topic %q: %w", subscription, name, err)
		}
	}
	return nil
}

// Waiting is how many messages wait in a subscription of a topic, as the broker tells.
func (s *Stage) Waiting(ctx context.Context, topic, subscription string) (n int64, err error) {
	err = s.manage(ctx, func(client *admin.Client) error {
		r, err := client.GetSubscriptionRuntimeProperties(ctx, s.Topic(topic), subscription, nil)
		if err != nil || r == nil {
			return fmt.Errorf("count the messages of subscription %q: %w", subscription, errors.Join(err, errNone(r == nil)))
		}
		n = int64(r.ActiveMessageCount)
		return nil
	})
	return n, err
}

func errNone(none bool) error {
	if none {
		return errors.New("there is none")
	}
	return nil
}

// remove deletes the topics that were made.
func (s *Stage) remove(ctx context.Context) error {
	return s.manage(ctx, func(client *admin.Client) error {
		var errs []error
		for _, name := range s.topics {
			if _, err := client.DeleteTopic(ctx, name, nil); err != nil {
				errs = append(errs, fmt.Errorf("delete topic %q: %w", name, err))
			}
		}
		return errors.Join(errs...)
	})
}

// manage hands a client of the management API to do.
func (s *Stage) manage(ctx context.Context, do func(*admin.Client) error) error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	if s.endpoints.ManagementURL != "" {
		roots, err := certificates(ctx, s.endpoints.ManagementURL)
		if err != nil {
			return err
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	client, err := admin.NewClientFromConnectionString(s.endpoints.ServiceBus, &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}},
	})
	if err != nil {
		return fmt.Errorf("open the management API: %w", err)
	}
	return do(client)
}

// certificates asks a sandbox which certificate to trust.
func certificates(ctx context.Context, url string) (*x509.CertPool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/$certificate", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("read the sandbox's certificate: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the sandbox's certificate: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the sandbox's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the sandbox's certificate: %s holds none", url)
	}
	return roots, nil
}
