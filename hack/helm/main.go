// Command helm lints a chart and renders it, with Helm's own code. It reads a request as JSON from standard input, and
// writes an answer to standard output.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

type request struct {
	// Chart is a folder, or a packaged chart.
	Chart string `json:"chart"`
	// Lint is only possible for a folder.
	Lint     bool      `json:"lint"`
	Releases []release `json:"releases"`
}

type release struct {
	Name      string         `json:"name"`
	Namespace string         `json:"namespace"`
	Values    map[string]any `json:"values"`
}

type answer struct {
	Version  string     `json:"version"`
	Messages []string   `json:"messages"`
	Rendered []rendered `json:"rendered"`
}

type rendered struct {
	// Files are the rendered templates by their paths.
	Files map[string]string `json:"files"`
	Error string            `json:"error"`
}

func run() error {
	var wanted request
	if err := json.NewDecoder(os.Stdin).Decode(&wanted); err != nil {
		return err
	}
	chart, err := loader.Load(wanted.Chart)
	if err != nil {
		return err
	}
	given := answer{Version: chart.Metadata.Version, Messages: []string{}}
	if wanted.Lint {
		for _, message := range lint.RunAll(wanted.Chart, map[string]any{}, "default").Messages {
			if message.Severity > support.InfoSev {
				given.Messages = append(given.Messages, message.Error())
			}
		}
	}
	for _, each := range wanted.Releases {
		files, err := render(wanted.Chart, each)
		if err != nil {
			given.Rendered = append(given.Rendered, rendered{Error: err.Error()})
		} else {
			given.Rendered = append(given.Rendered, rendered{Files: files})
		}
	}
	return json.NewEncoder(os.Stdout).Encode(given)
}

func render(path string, wanted release) (map[string]string, error) {
	chart, err := loader.Load(path)
	if err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: wanted.Name, Namespace: wanted.Namespace, Revision: 1, IsInstall: true}
	values, err := util.ToRenderValues(chart, wanted.Values, options, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	// Unlike the command helm, a template that uses an unknown value fails.
	strict := engine.Engine{Strict: true}
	return strict.Render(chart, values)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "helm:", err)
		os.Exit(1)
	}
}
