//! What a project is, for every interface: settings, agent files, prompts, wiring of runtime and tools.
