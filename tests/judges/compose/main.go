// Loads a compose file with the library of Docker Compose, which checks the schema, environment variables, and references between
// services and volumes. Each file that a service mounts from the machine must exist: Docker would create a folder in its place.
//
// usage: compose FILE
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

func main() {
	if err := check(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(files []string) error {
	options, err := cli.NewProjectOptions(files, cli.WithOsEnv, cli.WithResolvedPaths(true))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	for name, service := range project.Services {
		for _, volume := range service.Volumes {
			if volume.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(volume.Source); err != nil {
				return fmt.Errorf("service %s mounts a file that does not exist: %w", name, err)
			}
		}
	}
	fmt.Printf("%s: %d services\n", project.Name, len(project.Services))
	return nil
}
