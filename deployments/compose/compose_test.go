package compose

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"changerelay/deployments/internal/reference"
)

type service struct {
	Image       string         `json:"image"`
	Profiles    []string       `json:"profiles"`
	Restart     string         `json:"restart"`
	ReadOnly    bool           `json:"read_only"`
	CapDrop     []string       `json:"cap_drop"`
	Environment map[string]any `json:"environment"`
	Volumes     []string       `json:"volumes"`
	Scale       int            `json:"scale"`
}

func services(t *testing.T) map[string]service {
	t.Helper()
	text, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]service `json:"services"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Services
}

func TestCompose_EveryImageIsPinnedAndByVariable(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^\$\{[A-Z]+_IMAGE:-[a-z0-9./-]+:[A-Za-z0-9.-]+\}$`)
	for name, s := range services(t) {
		if !form.MatchString(s.Image) || strings.Contains(s.Image, "latest") {
			t.Errorf("%s: got image %q, want ${NAME_IMAGE:-image:tag} with a tag that stays", name, s.Image)
		}
		if s.Restart != "unless-stopped" {
			t.Errorf("%s: got restart %q, want unless-stopped", name, s.Restart)
		}
	}
}

func TestCompose_TheServicesAreHardenedAndSetOnlyWhatTheyHave(t *testing.T) {
	t.Parallel()
	all := services(t)
	for _, name := range []string{"publisher", "projector"} {
		s := all[name]
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.Profiles) > 0 || s.Scale != 2 {
			t.Errorf("%s: got %+v, want two with a read-only root and no capabilities, in no profile", name, s)
		}
		settings := reference.Settings(t, name)
		for variable := range s.Environment {
			if _, known := settings[variable]; !known {
				t.Errorf("%s: it has no setting %s", name, variable)
			}
		}
		for variable, value := range settings {
			if _, set := s.Environment[variable]; value == reference.Required && !set {
				t.Errorf("%s: %s is required and not set", name, variable)
			}
		}
	}
}

func TestCompose_EveryMountedFileIsThere(t *testing.T) {
	t.Parallel()
	for name, s := range services(t) {
		for _, volume := range s.Volumes {
			path, _, _ := strings.Cut(volume, ":")
			if !strings.HasPrefix(path, "./") {
				continue
			}
			if _, err := os.Stat("../../" + path); err != nil {
				t.Errorf("%s mounts what is not there: %v", name, err)
			}
		}
	}
}

// The emulator refuses a configuration beyond its limits when it starts.
func TestCompose_TheConfigurationFitsTheEmulator(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Config.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "EnablePartitioning") {
		t.Error("the configuration asks for partitioning, which the emulator does not have")
	}
	var config struct {
		UserConfig struct {
			Namespaces []struct {
				Name   string
				Topics []struct {
					Name          string
					Subscriptions []struct {
						Name       string
						Properties struct{ RequiresSession bool }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	n := config.UserConfig.Namespaces[0]
	if n.Name != "sbemulatorns" {
		t.Errorf("namespace: got %s, want sbemulatorns, the only one that the emulator takes", n.Name)
	}
	projector := services(t)["projector"].Environment
	for _, topic := range n.Topics {
		for _, s := range topic.Subscriptions {
			if topic.Name == projector["SERVICEBUS_TOPIC"] && s.Name == projector["SERVICEBUS_SUBSCRIPTION"] && s.Properties.RequiresSession {
				return
			}
		}
	}
	t.Errorf("got no subscription with sessions that the projector is set to: %+v", n)
}

// The emulator takes ten connections: two publishers with one each, two
// projectors, and one that looks on.
func TestCompose_TheConnectionsAreFewEnoughForTheEmulator(t *testing.T) {
	t.Parallel()
	all := services(t)
	each, ok := all["projector"].Environment["SERVICEBUS_CONNECTIONS"].(float64)
	if total := float64(all["publisher"].Scale) + each*float64(all["projector"].Scale) + 1; !ok || total > 10 {
		t.Errorf("connections: got %v, want ten at most", total)
	}
}
