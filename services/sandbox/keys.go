package sandbox

import (
	"cmp"
	"errors"
	"fmt"

	"changerelay/services/sandbox/internal/servicebus/sas"
)

// SASKey is a shared access key.
type SASKey struct {
	Name, Secret string
	// Rights is a list of Listen, Send and Manage, with commas between. Manage
	// contains the others.
	Rights string
}

// The key that is always there: the official emulator's.
const (
	rootKeyName   = "RootManageSharedAccessKey"
	rootKeySecret = "SAS_KEY_VALUE"
)

// keys are nil when no token is to be checked.
func (c Config) keys() (sas.Keys, error) {
	if !c.CheckSAS {
		return nil, nil
	}
	keys := sas.Keys{rootKeyName: {Secret: rootKeySecret, Rights: sas.All}}
	for _, k := range c.SASKeys {
		rights, err := sas.ParseRights(k.Rights)
		if err != nil || k.Name == "" || k.Secret == "" {
			return nil, fmt.Errorf("%w %q: %w", ErrKey, k.Name, cmp.Or(err, errors.New("name or secret is missing")))
		}
		keys[k.Name] = sas.Key{Secret: k.Secret, Rights: rights}
	}
	return keys, nil
}

// ErrKey is what New returns for one of the SASKeys that cannot be used.
var ErrKey = errors.New("use the shared access key")
