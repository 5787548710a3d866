package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

type spec struct {
	URI      Secret        `envconfig:"TEST_SETTINGS_URI" required:"true" desc:"where the database is"`
	TTL      time.Duration `envconfig:"TEST_SETTINGS_TTL" default:"15s" desc:"how long a lease lasts"`
	Count    int           `envconfig:"TEST_SETTINGS_COUNT" default:"3" desc:"how many"`
	Optional string        `envconfig:"TEST_SETTINGS_OPTIONAL" desc:"may be missing"`
}

func TestSettings_EveryProblemIsReportedAtOnce(t *testing.T) {
	t.Setenv("TEST_SETTINGS_TTL", "15")
	t.Setenv("TEST_SETTINGS_COUNT", "many")
	var s spec
	err := Load(&s, func() []*Problem {
		return []*Problem{
			Problemf("TEST_SETTINGS_OPTIONAL", "clashes with something"),
			Problemf("TEST_SETTINGS_COUNT", "is 0"),
		}
	})
	if err == nil {
		t.Fatal("got no error, want four problems")
	}
	for _, want := range []string{
		"TEST_SETTINGS_URI: is required: where the database is",
		`TEST_SETTINGS_TTL: "15" is not a duration`,
		`TEST_SETTINGS_COUNT: "many" is not a whole number`,
		"TEST_SETTINGS_OPTIONAL: clashes with something",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want it to contain %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "is 0") {
		t.Errorf("got %q, want nothing said of the zero that an unread value leaves", err)
	}
	var report strings.Builder
	Report(&report, "service", err)
	if want := "service: the configuration has 4 problem(s):"; !strings.HasPrefix(report.String(), want) {
		t.Errorf("got report %q, want it to begin with %q", report.String(), want)
	}
}

func TestLoad_RefusesAVariableThatIsNearlyASetting(t *testing.T) {
	for name, meant := range map[string]string{
		"TEST_SETTINGS_URL":     "TEST_SETTINGS_URI",
		"TEST_SETTINGS_TLL":     "TEST_SETTINGS_TTL",
		"TEST_SETTING_COUNTS":   "TEST_SETTINGS_COUNT",
		"test_settings_count":   "TEST_SETTINGS_COUNT",
		"TESTS_SETTING_COUNT":   "TEST_SETTINGS_COUNT",
		"TEST_SETTINGSOPTIONAL": "TEST_SETTINGS_OPTIONAL",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TEST_SETTINGS_URI", "mongodb://db")
			t.Setenv(name, "1")
			want := name + ": is no setting: did you mean " + meant + "?"
			if err := Load(&spec{}, nil); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			t.Setenv(name, "")
			if err := Load(&spec{}, nil); err != nil {
				t.Errorf("got %v, want nothing said of an empty variable", err)
			}
		})
	}
	t.Run("another name", func(t *testing.T) {
		t.Setenv("TEST_SETTINGS_URI", "mongodb://db")
		t.Setenv("TEST_SETTINGS_COLOUR", "red")
		t.Setenv("TESTING", "1")
		if err := Load(&spec{}, nil); err != nil {
			t.Errorf("got %v, want other programs' variables left alone", err)
		}
	})
}

func TestNear_ShortNamesHaveNeighboursOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, setting string
		want          bool
	}{
		{"NODE", "MODE", false},
		{"mode", "MODE", true},
		{"SENDER", "SENDERS", true},
		{"SPENDER", "SENDERS", false},
		{"LOGLEVEL", "LOG_LEVEL", true},
		{"LOG_LABELS", "LOG_LEVEL", false},
	} {
		if got := near(tt.name, tt.setting); got != tt.want {
			t.Errorf("near(%s, %s) = %v, want %v", tt.name, tt.setting, got, tt.want)
		}
	}
}

func TestCheckListen_WantsAPort(t *testing.T) {
	t.Parallel()
	for addr, valid := range map[string]bool{
		":8080": true, "127.0.0.1:0": true, "[::1]:8080": true, "8080": false, ":": false, "": false, ":http": false, ":65536": false, "::1:80": false,
	} {
		if problem := CheckListen("ADMIN_ADDR", addr); (problem == nil) != valid {
			t.Errorf("%q: got %v, want valid %v", addr, problem, valid)
		}
	}
}

// level reads itself.
type level int

func (l *level) UnmarshalText(text []byte) error {
	if string(text) != "info" {
		return errors.New("unknown level")
	}
	*l = 1
	return nil
}

func TestLoad_SaysWhatAValueOfItsOwnTypeMayBe(t *testing.T) {
	t.Setenv("TEST_SETTINGS_LEVEL", "verbose")
	var s struct {
		Level level `envconfig:"TEST_SETTINGS_LEVEL" default:"info" desc:"info, and nothing else"`
	}
	want := `TEST_SETTINGS_LEVEL: "verbose" is not valid: info, and nothing else`
	if err := Load(&s, nil); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSettings_AnEmptyVariableCountsAsNotSet(t *testing.T) {
	t.Setenv("TEST_SETTINGS_URI", "mongodb://db")
	t.Setenv("TEST_SETTINGS_TTL", "")
	var s spec
	if err := Load(&s, nil); err != nil {
		t.Fatal(err)
	}
	if s.TTL != 15*time.Second {
		t.Errorf("got TTL %s, want the default 15s", s.TTL)
	}
	t.Setenv("TEST_SETTINGS_URI", "")
	if err := Load(&spec{}, nil); err == nil || !strings.Contains(err.Error(), "TEST_SETTINGS_URI") {
		t.Errorf("got %v, want the empty required variable reported", err)
	}
}

func TestSettings_ASecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	s := spec{URI: "canary"}
	marshalled, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s), s.URI.String(), string(marshalled)} {
		if strings.Contains(text, "canary") {
			t.Errorf("the secret shows in %q", text)
		}
	}
	if got := s.URI.Reveal(); got != "canary" {
		t.Errorf("Reveal: got %q, want the value", got)
	}
}

func TestSettings_UsageListsEveryVariableWithItsDefault(t *testing.T) {
	t.Parallel()
	var usage strings.Builder
	if err := Usage(&usage, &spec{}); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(usage.String(), "\n"), 5; got != want {
		t.Errorf("got %d lines, want %d:\n%s", got, want, usage.String())
	}
	if want := "| `TEST_SETTINGS_TTL` | `15s` | how long a lease lasts |\n"; !strings.Contains(Markdown(&spec{}), want) {
		t.Errorf("got\n%s\nwant it to contain %s", Markdown(&spec{}), want)
	}
}
