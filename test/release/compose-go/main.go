// Prints a compose file as Docker Compose reads it, as JSON.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	options, err := cli.NewProjectOptions(nil, cli.WithWorkingDirectory(os.Args[1]), cli.WithEnvFiles(), cli.WithDotEnv, cli.WithDefaultConfigPath, cli.WithProfiles([]string{"*"}))
	if err == nil {
		if project, failed := options.LoadProject(context.Background()); failed != nil {
			err = failed
		} else if text, failed := project.MarshalJSON(); failed != nil {
			err = failed
		} else {
			fmt.Println(string(text))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
